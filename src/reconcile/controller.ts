// The loop: workers take keys and reconcile them. Only here is decided what a failure means for the next visit.
import { childSignal } from '../async/index.ts'
import { isStatusError } from '../apimachinery/status/index.ts'
import type { Logger } from '../telemetry/index.ts'
import type { KeyQueue } from './key-queue.ts'

/** What a visit asks for: nothing, or another visit later. */
export interface ReconcileResult {
  readonly requeueAfterSeconds?: number
}

/** Brings one object nearer to what is wanted. May run twice for one change; throws to be called again after a backoff. */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<ReconcileResult | undefined> | Promise<void>

export interface ControllerOptions {
  readonly name: string
  readonly queue: KeyQueue
  /** Keys reconciled at a time. Default 4. */
  readonly workers?: number
  readonly reconcile: Reconcile
  readonly log: Logger
  /** Aborted: no new key is taken. */
  readonly signal: AbortSignal
  /** How long visits that run at the end may go on before their signal aborts. Default 5 s. */
  readonly graceMs?: number
  /** A visit that takes longer is aborted and counts as failed. Default 120 s. */
  readonly timeoutMs?: number
}

/** Runs a controller until its signal aborts and its last visit has ended. Never rejects. */
export async function runController(options: ControllerOptions): Promise<void> {
  const { workers = 4, signal, graceMs = 5000 } = options
  // Visits live a little longer than the controller: they may finish what they began.
  const visits = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => {
    timer = setTimeout(() => visits.abort(signal.reason), graceMs)
  }
  if (signal.aborted) return
  signal.addEventListener('abort', stop, { once: true })
  try {
    await Promise.all(Array.from({ length: workers }, () => work(options, visits.signal)))
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

async function work(options: ControllerOptions, visits: AbortSignal): Promise<void> {
  for (;;) {
    let key: string
    try {
      key = await options.queue.take(options.signal)
    } catch {
      return
    }
    await visit(key, options, visits)
  }
}

async function visit(key: string, options: ControllerOptions, visits: AbortSignal): Promise<void> {
  const { queue, reconcile, timeoutMs = 120_000 } = options
  using life = childSignal(visits)
  const timer = setTimeout(() => life.abort(new Error(`took longer than ${timeoutMs / 1000} s`)), timeoutMs)
  try {
    const outcome = await reconcile(key, life.signal)
    queue.done(key, 'ok')
    if (outcome?.requeueAfterSeconds !== undefined) queue.addAfter(key, outcome.requeueAfterSeconds * 1000)
  } catch (error) {
    queue.done(key, 'failed')
    if (!visits.aborted) tell(key, error, options)
  } finally {
    clearTimeout(timer)
  }
}

function tell(key: string, error: unknown, { name, queue, log }: ControllerOptions): void {
  const failures = queue.failures(key)
  const keys = { controller: name, key, error, failures }
  // Somebody else was faster: the next visit sees what they wrote.
  const usual = isStatusError(error, 'Conflict') && failures < 5
  if (usual) log.debug('a visit lost a race and is repeated', keys)
  // Thousands of keys of one member that is away fail again and again: each is told of ever more rarely.
  else if (!isPowerOfTwo(failures)) log.debug('a visit failed once more and is repeated', keys)
  else log.warn('a visit failed and is repeated', keys)
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count))
}
