// What a deletion makes of an object: gone, or marked and held by finalizers, grace or its own content.
import { isDeepStrictEqual } from 'node:util'
import { timestamp } from '../../async/index.ts'
import type { KubeObject, ObjectMeta, Revision } from '../../apimachinery/meta/index.ts'
import { badRequest } from '../../apimachinery/status/index.ts'
import { decodeObject, encodeObject, stampRevision } from '../resources/object-bytes.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'

/** What a caller asks of a deletion; see DeleteOptions of Kubernetes. */
export interface DeleteOptions {
  readonly uid?: string
  readonly resourceVersion?: string
  readonly gracePeriodSeconds?: number
  readonly propagationPolicy?: string
}

/** Seconds of grace: a deletion under way may only be shortened. */
export function graceOf(
  { deletionTimestamp, deletionGracePeriodSeconds: pending = 0 }: ObjectMeta,
  asked: number | undefined,
  ofKind: (asked: number | undefined) => number | undefined,
): number {
  const isPending = deletionTimestamp !== undefined && pending > 0
  return isPending && (asked === undefined || asked >= pending) ? pending : (ofKind(asked) ?? 0)
}

/** What kinds of old leave behind unless they are told otherwise. */
export function defaultPolicy({ metadata }: KubeObject, strategy: ResourceDefinition['strategy']): string | undefined {
  const decided = metadata.finalizers?.some((name) => name === 'orphan' || name === 'foregroundDeletion') ?? false
  return strategy.orphansByDefault === true && !decided && metadata.deletionTimestamp === undefined
    ? 'Orphan'
    : undefined
}

/** The finalizers that a deletion by this policy leaves to be waited for. Throws 400 for a policy that is none. */
export function finalizersFor(finalizers: readonly string[], policy: string | undefined): string[] {
  const kept = finalizers.filter((finalizer) => finalizer !== 'foregroundDeletion' && finalizer !== 'orphan')
  switch (policy) {
    case undefined:
      return [...finalizers]
    case 'Background':
      return kept
    case 'Foreground':
      return [...kept, 'foregroundDeletion']
    case 'Orphan':
      return [...kept, 'orphan']
    default:
      throw badRequest(`invalid propagationPolicy "${policy}": it must be Background, Foreground or Orphan`)
  }
}

/** Marks the object as being deleted. False if that changed nothing. Mutates `object`. */
export function markDeleted(
  object: KubeObject,
  { finalizers, grace, now, endsItself }: { finalizers: string[]; grace: number; now: number; endsItself: boolean },
): boolean {
  const { metadata } = object
  const before = structuredClone(metadata)
  metadata.finalizers = finalizers
  if (finalizers.length === 0) delete metadata.finalizers
  if (metadata.deletionTimestamp === undefined) {
    metadata.deletionTimestamp = timestamp(now + grace * 1000)
    if (endsItself) return true
    metadata.deletionGracePeriodSeconds = grace
    if (metadata.generation !== undefined) metadata.generation++
  } else if (grace < (metadata.deletionGracePeriodSeconds ?? 0)) {
    metadata.deletionTimestamp = timestamp(now + grace * 1000)
    metadata.deletionGracePeriodSeconds = grace
  }
  return !isDeepStrictEqual(before, metadata)
}

/** Kinds that end gracefully are shown as deleted, if only at once. */
export function lastState(bytes: Uint8Array, strategy: ResourceDefinition['strategy'], now: number): Uint8Array {
  if (strategy.gracePeriodSeconds === undefined) return bytes
  const object = decodeObject(bytes)
  const revision = object.metadata.resourceVersion ?? ''
  const { metadata } = object
  if (metadata.deletionTimestamp === undefined) {
    metadata.deletionTimestamp = timestamp(now)
    if (metadata.generation !== undefined) metadata.generation++
  }
  metadata.deletionGracePeriodSeconds = 0
  return stampRevision(encodeObject(object), Number(revision) as Revision)
}

/** A namespace goes by its spec.finalizers, which its controller takes away when the content is gone. */
export function holdsItself(object: KubeObject): boolean {
  if (object.kind !== 'Namespace' || object.apiVersion !== 'v1') return false
  const spec = object['spec'] as { finalizers?: string[] } | undefined
  return (spec?.finalizers?.length ?? 0) > 0
}
