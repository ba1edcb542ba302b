// Values that a page loads once, or again and again while it is shown.
import { useSignal, type ReadonlySignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { messageOf } from '#console/kube/request.ts'
import { pause } from '#console/kube/follow.ts'

/** How long after a failure a value is loaded again that is otherwise loaded once. */
const retryMs = 3000

export interface Loaded<T> {
  readonly value?: T
  readonly error?: string
}

/**
 * Loads a value when the part is shown and when `inputs` change, and with `everyMs` again after that time. The last
 * value stays while it is loaded again.
 */
export function useLoaded<T>(
  load: (signal: AbortSignal) => Promise<T>,
  inputs: readonly unknown[],
  everyMs?: number,
): ReadonlySignal<Loaded<T>> {
  const state = useSignal<Loaded<T>>({})
  useEffect(() => {
    const life = new AbortController()
    state.value = {}
    void keepLoading(load, { everyMs, signal: life.signal, loaded: (value) => (state.value = value) })
    return () => life.abort()
  }, inputs)
  return state
}

interface Loading<T> {
  readonly everyMs: number | undefined
  readonly signal: AbortSignal
  readonly loaded: (value: Loaded<T>) => void
}

async function keepLoading<T>(
  load: (signal: AbortSignal) => Promise<T>,
  { everyMs, signal, loaded }: Loading<T>,
): Promise<void> {
  let last: Loaded<T> = {}
  do {
    try {
      last = { value: await load(signal) }
    } catch (error) {
      last = { ...last, error: messageOf(error) }
    }
    if (signal.aborted) return
    loaded(last)
    if (everyMs === undefined && last.error === undefined) return
    await pause(everyMs ?? retryMs, signal)
  } while (!isOver(signal))
}

/** A function, because the compiler takes a signal that was not aborted as one that never is. */
const isOver = (signal: AbortSignal): boolean => signal.aborted
