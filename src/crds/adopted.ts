// The records, in a logical cluster, of what it has adopted from a member: the namespace there keeps its name, and the
// objects there stay as they are until their tenant changes them or they move.
import { isJsonObject, type DeepReadonly, type KubeObject } from '#apimachinery/meta/index.ts'
import { contentHash, unchangingHash } from './content-hash.ts'
import { adoptedAnnotation, adoptedNamespaceAnnotation, parseAnnotation } from './sync-contract.ts'
import { templateOf, valueAt, workloadKindOfObject } from './workload-kinds.ts'

/** Adopting and Leaving: nobody but the operator writes in the namespace, on both sides. */
export const adoptionStates = ['Adopting', 'Adopted', 'Leaving'] as const
export type AdoptionState = (typeof adoptionStates)[number]

/** A namespace of a logical cluster that one member has under another name than usual. */
export interface AdoptedNamespace {
  readonly member: string
  /** The name in the member. */
  readonly namespace: string
  /** The uid of the namespace in the member. */
  readonly uid: string
  /** The uid of the Adoption. */
  readonly adoption: string
  readonly state: AdoptionState
  /** The labels of the namespace in the member that kcp has changed, as they were before; null: there was none. */
  readonly before: Readonly<Record<string, string | null>>
  /** The adoption has created the namespace in the logical cluster. */
  readonly isNew?: true
}

/** An object of a logical cluster that was made of a running object of a member. */
export interface AdoptedObject {
  readonly member: string
  /** The uid of the Adoption. */
  readonly adoption: string
  /** The hash of adoptedContentOf the object then; absent where the copy is always written as usual. */
  readonly content?: string
}

type Annotated = DeepReadonly<KubeObject>

const namespaces = new WeakMap<Annotated, AdoptedNamespace>()

/** The record on a namespace of a logical cluster; undefined if it was not adopted. */
export function adoptedNamespace(namespace: Annotated | undefined): AdoptedNamespace | undefined {
  if (namespace?.metadata.annotations?.[adoptedNamespaceAnnotation] === undefined) return undefined
  const known = namespaces.get(namespace)
  if (known !== undefined) return known
  const record = parseAnnotation(namespace, adoptedNamespaceAnnotation)
  const { member, namespace: name, uid, adoption, state, before } = record
  const isValid = [member, name, uid, adoption].every((value) => typeof value === 'string' && value !== '')
  if (!isValid || !adoptionStates.includes(state as AdoptionState) || !isJsonObject(before)) return undefined
  namespaces.set(namespace, record as unknown as AdoptedNamespace)
  return record as unknown as AdoptedNamespace
}

/** The record on an object of a logical cluster; undefined if it was not adopted. */
export function adoptedObject(object: Annotated | undefined): AdoptedObject | undefined {
  if (object?.metadata.annotations?.[adoptedAnnotation] === undefined) return undefined
  const record = parseAnnotation(object, adoptedAnnotation)
  const { member, adoption } = record
  return typeof member === 'string' && typeof adoption === 'string' ? (record as unknown as AdoptedObject) : undefined
}

/** The part of an object that its copy keeps as it was: the pod template of a workload, the selector of a Service. */
export function adoptedContentOf(object: Annotated): string | undefined {
  if (object.kind === 'Service') return contentHash(valueAt(object, ['spec', 'selector']) ?? null)
  return workloadKindOfObject(object) === undefined ? undefined : unchangingHash(templateOf(object))
}

/** Whether the copy in the member keeps this part: the tenant has not changed it since the adoption from this member. */
export function isAsAdopted(object: Annotated, member: string | undefined): boolean {
  const adopted = adoptedObject(object)
  if (adopted?.content === undefined || adopted.member !== member) return false
  return adopted.content === adoptedContentOf(object)
}
