// The loop of a controller: workers take keys and reconcile them. Only this file decides what follows a failure.
import { childSignal } from '#async/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { inNewTrace, processTracer, type Logger, type Tracer } from '#telemetry/index.ts'
import type { KeyQueue } from './key-queue.ts'

/** The result of a reconcile: nothing more to do, or another reconcile later. */
export interface ReconcileResult {
  readonly requeueAfterSeconds?: number
}

/**
 * Brings one object closer to its desired state. May run twice for one change. If it throws, it runs again after a
 * backoff.
 */
export type Reconcile = (key: string, signal: AbortSignal) => Promise<ReconcileResult | undefined> | Promise<void>

export interface ControllerOptions {
  readonly name: string
  readonly queue: KeyQueue
  /** Number of keys reconciled at the same time. Default 4. */
  readonly workers?: number
  readonly reconcile: Reconcile
  readonly log: Logger
  /** When it aborts, no new key is taken. */
  readonly signal: AbortSignal
  /** After `signal` aborts, running reconciles may continue for this time. Default 5 s. */
  readonly graceMs?: number
  /** A reconcile that takes longer is aborted and counts as failed. Default 120 s. */
  readonly timeoutMs?: number
}

/** Runs a controller until its signal aborts and its last reconcile has ended. Never rejects. */
export async function runController(options: ControllerOptions): Promise<void> {
  const { workers = 4, signal, graceMs = 5000 } = options
  // Reconciles have a signal of their own, so that they can finish after the controller's signal aborts.
  const reconciles = new AbortController()
  let timer: NodeJS.Timeout | undefined
  const stop = (): void => {
    timer = setTimeout(() => reconciles.abort(signal.reason), graceMs)
  }
  if (signal.aborted) return
  signal.addEventListener('abort', stop, { once: true })
  try {
    await Promise.all(Array.from({ length: workers }, () => work(options, reconciles.signal)))
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', stop)
  }
}

async function work(options: ControllerOptions, reconciles: AbortSignal): Promise<void> {
  for (;;) {
    let key: string
    try {
      key = await options.queue.take(options.signal)
    } catch {
      return
    }
    await reconcile(key, options, reconciles)
  }
}

async function reconcile(key: string, options: ControllerOptions, reconciles: AbortSignal): Promise<void> {
  const { queue, reconcile, timeoutMs = 120_000 } = options
  using life = childSignal(reconciles)
  const timer = setTimeout(() => life.abort(new Error(`took longer than ${timeoutMs / 1000} s`)), timeoutMs)
  try {
    const tracer = processTracer()
    const outcome = await (tracer === undefined
      ? reconcile(key, life.signal)
      : traced(key, options, life.signal, tracer))
    queue.done(key, 'ok')
    if (outcome?.requeueAfterSeconds !== undefined) queue.addAfter(key, outcome.requeueAfterSeconds * 1000)
  } catch (error) {
    queue.done(key, 'failed')
    if (!reconciles.aborted) logFailure(key, error, options)
  } finally {
    clearTimeout(timer)
  }
}

/** Runs a reconcile in a trace of its own, to which its requests belong. */
function traced(
  key: string,
  { name, reconcile, queue }: ControllerOptions,
  signal: AbortSignal,
  tracer: Tracer,
): Promise<ReconcileResult | undefined> {
  const attributes = { controller: name, key, failures: queue.failures(key) }
  return inNewTrace(tracer, `Reconcile ${name}`, async () => (await reconcile(key, signal)) ?? undefined, attributes)
}

function logFailure(key: string, error: unknown, { name, queue, log }: ControllerOptions): void {
  const failures = queue.failures(key)
  const keys = { controller: name, key, error, failures }
  // Another writer was faster: the next reconcile sees its write.
  const isUsual = isStatusError(error, 'Conflict') && failures < 5
  if (isUsual) log.debug('a reconcile had a conflict and is repeated', keys)
  // If a member is down, thousands of keys fail repeatedly: each one is logged at failure 1, 2, 4, 8 and so on.
  else if (!isPowerOfTwo(failures)) log.debug('a reconcile failed again and is repeated', keys)
  else log.warn('a reconcile failed and is repeated', keys)
}

function isPowerOfTwo(count: number): boolean {
  return Number.isInteger(Math.log2(count))
}
