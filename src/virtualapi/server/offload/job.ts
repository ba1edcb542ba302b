// A request for an offload thread, from the queue until it is answered.
import type { currentContext } from '#telemetry/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { JobResult, ToWorker } from './protocol.ts'

export interface Job {
  readonly id: number
  /** The logical cluster, for fairness. */
  readonly flow: string
  /** Size of the body, bytes. */
  readonly bytes: number
  readonly objects: ClusterObjects | undefined
  /** The objects of its ancestors, and of the provider of the resource. */
  readonly above: readonly ClusterObjects[]
  readonly signal: AbortSignal
  /** When it was queued, monotonic milliseconds. */
  readonly queuedAt: number
  /** Makes the message for the worker, anew for each attempt, because sending it transfers the body. */
  readonly message: () => { readonly message: ToWorker; readonly transfer: ArrayBuffer[] }
  /** Settles as the given promise; meanwhile the request does not count in the process-wide limit. */
  readonly whileWaiting: Exchange['whileWaiting']
  readonly turn: Exchange['turn']
  /** Runs the work of the main thread for this job in the trace of its request. */
  readonly inTrace: ReturnType<typeof currentContext>
  readonly settle: (outcome: JobResult | Error) => void
  /** How many times the job was given to a thread. */
  attempts: number
  /** The number of outbound calls, such as calls to webhooks, that the job waits for; it computes nothing meanwhile. */
  calls: number
  /** The job has asked for a write, so it must not run again. */
  hasWritten: boolean
}
