// What the main thread and the offload thread say to each other. Bytes are transferred, never objects: to copy one
// of 100,000 values would take as long as to decode it.
import type { MessagePort } from 'node:worker_threads'
import type { ClusterId, Revision } from '../../apimachinery/meta/index.ts'
import type { Status } from '../../apimachinery/status/index.ts'
import type { ObjectKey, StoreErrorCode } from '../../store/index.ts'
import type { ClusterObjects } from '../../store/hub/index.ts'
import type { Named } from '../audit/index.ts'
import type { UserInfo } from '../authn/user-info.ts'
import type { ReadableForm } from '../codec/answers.ts'
import type { LogicalCluster } from '../clusters/directory.ts'
import type { Allocation, AllocationRequest } from '../kinds/index.ts'
import type { BytesAnswer } from '../exchange/exchange.ts'

/** A request that was let in: who asks and of which logical cluster is decided. */
export interface OffloadedRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly body: Uint8Array
  readonly user: UserInfo
  readonly cluster: LogicalCluster
  readonly isLoopback: boolean
  /** Wall clock in milliseconds since the epoch. */
  readonly now: number
}

/** A write to one object of the request's logical cluster. */
export type Write = { readonly key: Omit<ObjectKey, 'cluster'> } & (
  | { readonly do: 'create'; readonly value: Uint8Array }
  | { readonly do: 'update'; readonly value: Uint8Array; readonly ifRevision: Revision }
  | { readonly do: 'delete'; readonly ifRevision: Revision }
)

export type WriteResult =
  | {
      readonly is: 'written'
      readonly revision: Revision
      readonly createRevision: Revision
      /** Of what was deleted: its last state. What was put is known to who put it. */
      readonly bytes?: Uint8Array
    }
  | { readonly is: 'store error'; readonly code: StoreErrorCode; readonly message: string }
  | { readonly is: 'failure'; readonly message: string }

/** A question about one logical cluster. The thread waits for the answer, which is given from memory. */
export type Read =
  | {
      readonly do: 'get'
      readonly resource: string
      readonly namespace: string
      readonly name: string
      readonly known: number
    }
  | {
      readonly do: 'list'
      readonly resource: string
      readonly namespace?: string
      readonly known: ReadonlyMap<string, number>
    }
  | { readonly do: 'revision' }
  | { readonly do: 'changes'; readonly resource: string }
  | { readonly do: 'changedNames'; readonly resource: string; readonly since: number }
  | { readonly do: 'life' }
  | {
      readonly do: 'allocate'
      readonly request: AllocationRequest
      readonly method: keyof Allocation
      readonly value?: string | number
    }

/** An object as it is told to the thread; without bytes where the thread has them. */
export interface ToldEntry {
  readonly namespace: string
  readonly name: string
  readonly revision: Revision
  readonly createRevision: Revision
  readonly base: boolean
  readonly bytes: Uint8Array | undefined
}

/** What each question is answered with. */
export interface ReadAnswers {
  get: ToldEntry | undefined
  list: readonly ToldEntry[]
  revision: Revision
  changes: number
  changedNames: ReturnType<ClusterObjects['changedNames']>
  /** Another number after the logical cluster was out of memory: `changes` began anew. */
  life: number
  allocate: string | number | undefined
}

/** What the thread wakes up to. */
export type ReadResult =
  | { readonly is: 'answer'; readonly answer: unknown }
  /** Of the store's kind where it has a code, as when the logical cluster has just been deleted. */
  | { readonly is: 'failure'; readonly code: StoreErrorCode | undefined; readonly message: string }

/** To the thread. */
export type ToWorker =
  | { readonly do: 'answer'; readonly job: number; readonly request: OffloadedRequest }
  | { readonly do: 'reformat'; readonly job: number; readonly answer: BytesAnswer; readonly form: ReadableForm }
  /** Nobody waits for it any more. */
  | { readonly do: 'abort'; readonly job: number }
  | { readonly do: 'written'; readonly write: number; readonly result: WriteResult }

/** What a request came to besides its answer. */
export interface Told {
  readonly warnings: readonly string[]
  readonly named: Named | undefined
}

export type JobResult =
  | ({ readonly is: 'answer'; readonly answer: BytesAnswer } & Told)
  | ({
      readonly is: 'refused'
      readonly status: Status
      readonly headers: Readonly<Record<string, string>>
      readonly text: string | undefined
      /** What lies behind it, for the log. */
      readonly cause: string | undefined
    } & Told)
  /** A bug, as the log shall have it. */
  | { readonly is: 'failed'; readonly stack: string }

/** From the thread. */
export type FromWorker =
  | { readonly is: 'done'; readonly job: number; readonly outcome: JobResult }
  | { readonly is: 'read'; readonly cluster: ClusterId; readonly read: Read }
  | { readonly is: 'write'; readonly job: number; readonly write: number; readonly what: Write }

/** What the thread is started with. */
export interface WorkerSettings {
  /** Where LogicalClusters are kept in a logical cluster of our own. */
  readonly hasRoot: boolean
  /** Counts answers to reads: the thread sleeps on it. */
  readonly answered: Int32Array<SharedArrayBuffer>
  /** Where the answers to reads come. */
  readonly answers: MessagePort
}

/** The bytes in memory of their own, which can be transferred. */
export function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}
