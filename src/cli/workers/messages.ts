// The messages between the supervisor and its workers, over the channel that Node opens to a child process.
import type { MetricsSnapshot } from '#telemetry/index.ts'

export type ToWorker =
  /** Stop, and hand over first. */
  | { readonly kind: 'stop' }
  /** Do what SIGHUP asks for: open the files of logs again. */
  | { readonly kind: 'reopen' }
  /** Another worker has ended. */
  | { readonly kind: 'ended' }
  /** The state of the other workers has changed. */
  | { readonly kind: 'siblings'; readonly notReady?: string }
  /** Send your metrics. */
  | { readonly kind: 'ask'; readonly id: number }
  /** The metrics of the other workers and the counters of those that have ended: the answer to `ask`. */
  | { readonly kind: 'snapshots'; readonly id: number; readonly snapshots: readonly MetricsSnapshot[] }

export type ToSupervisor =
  /** The worker works. `says`: what a user is told; `name`: that of its socket. */
  | { readonly kind: 'ready'; readonly says: string; readonly name: string }
  /** The worker's event loop runs; sent every `aliveMs`, also before `ready`. */
  | { readonly kind: 'alive'; readonly notReady?: string }
  /** Ask the other workers for their metrics; `own` are those of this one. */
  | { readonly kind: 'ask'; readonly id: number; readonly own: MetricsSnapshot }
  /** The metrics of this worker: the answer to `ask`. */
  | { readonly kind: 'snapshot'; readonly id: number; readonly snapshot: MetricsSnapshot }

/** Time between two signs of life of a worker, milliseconds. */
export const aliveMs = 1000

/** Begins the name of the directory of the sockets. */
export const socketsPrefix = 'kcp-workers-'

/** The variables by which a supervisor tells a worker its place. */
export const variables = { index: 'KCP_WORKER', sockets: 'KCP_WORKER_SOCKETS' } as const
