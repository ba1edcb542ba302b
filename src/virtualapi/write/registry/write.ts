// The types of a write: its target, its options, its result, and its state between the steps.
import type { GroupVersionKind, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { Admission, AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { LedgerFor } from '#virtualapi/write/quota/index.ts'
import type { DeleteOptions } from './deletion.ts'
import type { StoredForms } from './stored-forms.ts'

/** Where a request writes, and for whom. */
export interface RegistryTarget {
  readonly definition: ResourceDefinition
  readonly context: RequestContext
  readonly signal: AbortSignal
  readonly namespace: string
  /** True: nobody waits for this write, so the store may defer it. */
  readonly deferrable?: boolean
  /** True: the request deletes a collection of which this is one object. */
  readonly ofCollection?: boolean
  /** Present for objects that run elsewhere. */
  readonly forward?: Forward
}

/**
 * Makes a write where the object runs, after admission and validation and before it is stored. Rejects where it is
 * refused; then nothing is stored. Both are called again after a lost race.
 */
export interface Forward {
  update(next: KubeObject, old: KubeObject, subresource: string): Promise<void>
  /** Resolves with whether the object was deleted elsewhere. */
  delete(object: KubeObject, options: DeleteOptions): Promise<boolean>
}

export interface CreateOptions {
  /**
   * The object is a copy of an object elsewhere. The copy keeps its status, and its uid unless another object here has
   * that uid: then the copy gets a new one.
   */
  readonly keepUid?: boolean
  /** The object already says who owns which of its fields. */
  readonly keepsManagedFields?: boolean
}

/** The change of an update. */
export interface UpdateOptions {
  /** Empty for the object itself; otherwise `status`, `scale` and the like. */
  readonly subresource: string
  /** Returns the wanted object for the current one (undefined: there is none). Must not change its argument. */
  readonly change: (current: KubeObject | undefined) => KubeObject | Promise<KubeObject>
  /** The result of `change` says who owns which of its fields. */
  readonly keepsManagedFields?: boolean
  /** True: an object that is not there is created, whatever its kind. */
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
}

/** A try of a write: it ends with a result, an error, or a lost race. */
interface Try {
  readonly target: RegistryTarget
  readonly dependencies: WriteDependencies
  /** The write as admission sees it. */
  readonly request: AdmissionRequest
}

/** A try of a create or an update. */
export interface Write<Old extends KubeObject | undefined = KubeObject | undefined> extends Try {
  /** The object that will be stored. The steps change it. */
  readonly object: KubeObject
  /** The stored object, in the form of the write path; undefined for a create. */
  readonly old: Old
  /** True: the object already says who owns which of its fields. */
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
  /** Called once the object was deleted where it runs. */
  readonly onDeletedElsewhere: () => void
  result?: Deleted
}
