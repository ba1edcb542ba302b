// A request for an offload thread, from the queue until it is answered.
import type { currentContext } from '#telemetry/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { JobResult, ToWorker } from './protocol.ts'

export interface Job {
  readonly id: number
  /** The logical cluster, for fairness. */
  readonly flow: string
  /** Size of the body. */
  readonly bytes: number
  readonly objects: ClusterObjects | undefined
  readonly signal: AbortSignal
  /** When it was queued, monotonic milliseconds. */
  readonly queuedAt: number
  /** Makes the message for the worker; again for each attempt, because the body changes its owner. */
  readonly message: () => { readonly message: ToWorker; readonly transfer: ArrayBuffer[] }
  /** Resolves as `answer`; the request does not count in the process-wide limit meanwhile. */
  readonly whileWaiting: Exchange['whileWaiting']
  readonly turn: Exchange['turn']
  /** Runs what the main thread does for it in the trace of its request. */
  readonly inTrace: ReturnType<typeof currentContext>
  readonly settle: (outcome: JobResult | Error) => void
  /** How often it was given to a thread. */
  attempts: number
  /** Outbound calls that it waits for, such as those of webhooks: it computes nothing meanwhile. */
  calls: number
  /** It has asked for a write, so it must not run again. */
  hasWritten: boolean
}
