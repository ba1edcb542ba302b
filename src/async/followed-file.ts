// A file whose content is read again when it changes.
import { readFile } from 'node:fs/promises'
import { sleep } from './sleep.ts'

export interface FollowFileOptions<T> {
  /** Throws for a content with an error, which then changes nothing. */
  readonly parse: (text: string) => T
  readonly onChange?: (value: T) => void
  /** Called once for each content with an error. */
  readonly onRefused?: (error: unknown) => void
  readonly onUnreadable?: (error: unknown) => void
  readonly signal: AbortSignal
  /** Milliseconds between two looks at the file. Default 2000. */
  readonly everyMs?: number
}

const lookMs = 2000
const maxBytes = 1024 * 1024

/** Reads the file and follows it until the signal aborts. Rejects if it has an error at the start. */
export async function followFile<T>(file: string, options: FollowFileOptions<T>): Promise<{ current(): T }> {
  const { parse, onChange, onRefused, onUnreadable, signal, everyMs = lookMs } = options
  let text = await readBounded(file)
  let current = parse(text)
  let refused: string | undefined
  const look = async (): Promise<void> => {
    const next = await readBounded(file)
    if (next === text || next === refused) return
    try {
      current = parse(next)
      text = next
      refused = undefined
      onChange?.(current)
    } catch (error) {
      refused = next
      onRefused?.(error)
    }
  }
  // Ends with the signal.
  void (async () => {
    for (;;) {
      await sleep(everyMs, signal)
      await look().catch((error: unknown) => onUnreadable?.(error))
    }
  })().catch(() => undefined)
  return { current: () => current }
}

async function readBounded(file: string): Promise<string> {
  const bytes = await readFile(file)
  if (bytes.length > maxBytes) throw new Error(`${file} is larger than ${maxBytes} bytes`)
  return bytes.toString('utf8')
}
