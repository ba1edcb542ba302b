// The types of a write: its target, its options, its result, and its state between the steps.
import type { GroupVersionKind, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { Admission, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { LedgerFor } from '#virtualapi/write/quota/index.ts'
import type { DeleteOptions } from './deletion.ts'
import type { StoredForms } from './stored-forms.ts'

/** The resource, the namespace and the request of a write. */
export interface RegistryTarget {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
  readonly signal: AbortSignal
  readonly namespace: string
  /** True: one of our own loops makes this write, and no other client waits for it, so the store may defer it. */
  readonly deferrable?: boolean
  /** True: the request deletes a collection to which this object belongs. */
  readonly ofCollection?: boolean
  /** Makes the write in a member first. Present for objects that run in a member. */
  readonly forward?: Forward
}

/**
 * Makes a write in the member where the object runs, after admission and validation and before the object is stored.
 * Rejects if the write is refused there; then nothing is stored. Both methods are called again after a lost race.
 */
export interface Forward {
  update(next: KubeObject, old: KubeObject, subresource: string): Promise<void>
  /** Resolves with true if the object was deleted in the member. */
  delete(object: KubeObject, options: DeleteOptions): Promise<boolean>
}

export interface CreateOptions {
  /**
   * True: the object exists in a member already. It keeps its status, and it keeps its uid unless another object of the
   * logical cluster has that uid; then it gets a new one.
   */
  readonly keepUid?: boolean
  /** True: managedFields of the object are complete and are kept as they are. */
  readonly keepsManagedFields?: boolean
}

/** The change of an update. */
export interface UpdateOptions {
  /** Empty for the object itself; otherwise `status`, `scale` and the like. */
  readonly subresource: string
  /**
   * Returns the wanted object for the current one (undefined if there is none). The function must not change its
   * argument.
   */
  readonly change: (current: KubeObject | undefined) => KubeObject | Promise<KubeObject>
  /** True: managedFields of the result of `change` are complete and are kept as they are. */
  readonly keepsManagedFields?: boolean
  /** True: the object is created if it does not exist, whatever its kind. */
  readonly createMissing?: boolean
  /** True: a changed uid in the result of `change` is a validation error, not a failed precondition. */
  readonly isPatch?: boolean
}

/** The result of a create or update. */
export interface Written {
  readonly object: KubeObject
  /** The bytes for the wire. */
  readonly bytes: Uint8Array
  readonly created: boolean
}

/** The result of a deletion: the last state of the object, or the object that finalizers or a grace period keep. */
export interface Deleted {
  readonly deleted: boolean
  readonly object: KubeObject
  readonly bytes: Uint8Array
}

/** A request to a subresource that takes objects of its own kind. */
export type AdmittedPart = Pick<AdmissionRequest, 'operation' | 'subresource' | 'name'> & {
  readonly kind: GroupVersionKind
}

/** The dependencies of the steps. */
export interface WriteDependencies {
  readonly admission: Admission
  readonly forms: StoredForms
  readonly ledgerFor: LedgerFor
  /** False where no shared APIs are served. */
  readonly sharedApis: boolean
}

/** A try of a write: it ends with a result, an error, or a lost race. */
interface Try {
  readonly target: RegistryTarget
  readonly dependencies: WriteDependencies
  /** The write in the form that admission gets. */
  readonly request: AdmissionRequest
}

/** A try of a create or an update. */
export interface Write<Old extends KubeObject | undefined = KubeObject | undefined> extends Try {
  /** The object that will be stored. The steps change it. */
  readonly object: KubeObject
  /** The stored object, in the form of the write path; undefined for a create. */
  readonly old: Old
  /** True: managedFields of the object are complete and are kept as they are. */
  readonly keepsManagedFields: boolean
  /** Managed fields as the client sent them. */
  given?: ObjectMeta['managedFields']
  /** Managed fields after this write, which admission cannot change. */
  entries?: ObjectMeta['managedFields']
  /** Amounts of quotas, held until the write has ended. */
  held?: Disposable | undefined
  result?: Written
}

export interface Create extends Write<undefined> {
  /** As in CreateOptions. */
  readonly keepUid: boolean
}

export interface Update extends Write<KubeObject> {
  readonly entry: Entry
  readonly isPatch: boolean
  /** Errors about changed fields that only the server may set. */
  serverFieldCauses: readonly StatusCause[]
}

/** A try of a deletion. */
export interface Deletion extends Try {
  readonly entry: Entry
  readonly options: DeleteOptions
  /** Stored bytes in the form of the write path. */
  readonly bytes: Uint8Array
  /** The object of `bytes`, which the steps mark as being deleted. */
  readonly object: KubeObject
  /** Called after the object was deleted in its member. */
  readonly onDeletedElsewhere: () => void
  result?: Deleted
}
