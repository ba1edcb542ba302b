// Messages between the main thread and the worker. Bytes are transferred, never objects: cloning an object of 100,000
// values takes as long as decoding it.
import type { MessagePort } from 'node:worker_threads'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import type { Status } from '#apimachinery/status/index.ts'
import type { ObjectKey, StoreErrorCode } from '#store/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import type { Named } from '#virtualapi/request/request-audit.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { ReadableForm } from '#virtualapi/codec/responses.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { Allocation, AllocationRequest } from '#virtualapi/kinds/resources/allocation.ts'
import type { Decision, QuotaCharge } from '#virtualapi/write/quota/index.ts'
import type { BytesResponse } from '#virtualapi/request/exchange.ts'
import type { OutboundResponse, OutboundRequest } from '#virtualapi/outbound/calls/outbound.ts'
import type { PlainCluster } from '#virtualapi/request/plain-cluster.ts'
import type { ToldDefinition } from './told-definition.ts'
import type { ToldView } from './told-view.ts'
import type { ToldFleet } from './told-fleet.ts'

/** A request that was authenticated and authorized on the main thread. */
export interface OffloadedRequest {
  readonly method: string
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly body: Uint8Array
  readonly user: UserInfo
  readonly cluster: LogicalCluster
  /** Other logical clusters whose admission acts: its ancestors, and the provider of the resource. */
  readonly known: readonly LogicalCluster[]
  /** The view of an export through which the request came; undefined: it came directly. */
  readonly view: ToldView | undefined
  /** Whether a member may run pods of the logical cluster. */
  readonly mayRunPods: boolean
  readonly isLoopback: boolean
  /** Whether the audit log records the object in the request. */
  readonly recordsRequest: boolean
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
      /** The last state of a deleted object; absent for creates and updates. */
      readonly bytes?: Uint8Array
    }
  | { readonly is: 'store error'; readonly code: StoreErrorCode; readonly message: string }
  | { readonly is: 'failure'; readonly message: string }

/**
 * Asks for the members and the rules about them, which belong to no logical cluster. If nothing has changed since the
 * version `known`, the answer leaves them out.
 */
export interface FleetRead {
  readonly do: 'fleet'
  readonly known: number
}

/** Asks for a definition that other logical clusters share. `known`: the hash of the one that the worker has. */
export interface DefinitionRead {
  readonly do: 'definition'
  readonly name: string
  readonly known: string | undefined
}

/**
 * A read in one logical cluster. The worker blocks until the main thread has answered it from memory. `known`: the
 * revisions of the objects that the worker has already; -1 for none.
 */
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
  | FleetRead
  | {
      readonly do: 'allocate'
      readonly request: AllocationRequest
      readonly method: keyof Allocation
      readonly value?: string | number
    }
  | DefinitionRead
  | { readonly do: 'charge'; readonly charge: QuotaCharge }
  | { readonly do: 'release'; readonly namespace: string; readonly held: number }

/** An object as sent to the worker; without bytes if the worker has this revision. */
export interface ToldEntry {
  readonly namespace: string
  readonly name: string
  readonly revision: Revision
  readonly createRevision: Revision
  readonly base: boolean
  readonly bytes: Uint8Array | undefined
}

/** The type of the answer of each read. */
export interface ReadAnswers {
  get: ToldEntry | undefined
  list: readonly ToldEntry[]
  revision: Revision
  changes: number
  changedNames: ReturnType<ClusterObjects['changedNames']>
  /**
   * A number that differs after the logical cluster was evicted and loaded again, because `changes` then starts again.
   */
  life: number
  fleet: ToldFleet | undefined
  allocate: string | number | undefined
  definition: ToldDefinition | undefined
  charge: Decision
  release: undefined
}

/** The answer of a read. */
export type ReadResult =
  | { readonly is: 'answer'; readonly answer: unknown }
  /** With a code, the failure is a StoreError, for example when the logical cluster was just deleted. */
  | { readonly is: 'failure'; readonly code: StoreErrorCode | undefined; readonly message: string }

/** The result of an outbound call. */
export type PostResult =
  | { readonly is: 'answer'; readonly answer: OutboundResponse }
  /** `isEgress`: an EgressError, whose message may be shown. */
  | { readonly is: 'failure'; readonly message: string; readonly isEgress: boolean }

/** Messages to the worker. */
export type ToWorker =
  | { readonly do: 'answer'; readonly job: number; readonly request: OffloadedRequest }
  | { readonly do: 'reformat'; readonly job: number; readonly answer: BytesResponse; readonly form: ReadableForm }
  /** The request was aborted. */
  | { readonly do: 'abort'; readonly job: number }
  | { readonly do: 'written'; readonly write: number; readonly result: WriteResult }
  | { readonly do: 'posted'; readonly post: number; readonly result: PostResult }

/** Results of a request besides its answer. */
export interface Told {
  readonly warnings: readonly string[]
  readonly named: Named | undefined
  /** Annotations for the audit line. */
  readonly annotations: ReadonlyMap<string, string> | undefined
  /** The object in the request as JSON, if the audit log records it. */
  readonly requested: string | undefined
}

export type JobResult =
  | ({ readonly is: 'answer'; readonly answer: BytesResponse } & Told)
  | ({
      readonly is: 'refused'
      readonly status: Status
      readonly headers: Readonly<Record<string, string>>
      readonly text: string | undefined
      /** The stack of the cause, for the log. */
      readonly cause: string | undefined
    } & Told)
  /** An unexpected error, for the log. */
  | { readonly is: 'failed'; readonly stack: string }

/** Messages from the worker. */
export type FromWorker =
  | { readonly is: 'done'; readonly job: number; readonly outcome: JobResult }
  | { readonly is: 'read'; readonly cluster: ClusterId; readonly read: Read }
  | { readonly is: 'write'; readonly job: number; readonly write: number; readonly what: Write }
  | { readonly is: 'post'; readonly job: number; readonly post: number; readonly request: OutboundRequest }

/** The settings of a worker. */
export interface WorkerSettings {
  /** True if LogicalCluster objects are stored in our own logical cluster `root`. */
  readonly hasRoot: boolean
  /** The only cluster of the server; absent: it serves logical clusters. */
  readonly plain: PlainCluster | undefined
  /** True if there may be members. */
  readonly hasFleet: boolean
  /** Counts answers to reads; the worker waits on it with Atomics.wait. */
  readonly answered: Int32Array<SharedArrayBuffer>
  /** Receives the answers to reads. */
  readonly answers: MessagePort
  /** The job that computes (0: none), and a number that the worker increments with each step of a job. */
  readonly progress: Int32Array<SharedArrayBuffer>
}

/** A copy of the bytes in a buffer of their own, which can be transferred. */
export function owned(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes)
}
