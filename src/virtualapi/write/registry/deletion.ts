// The effect of a deletion on an object: removal, or a mark while finalizers, a grace period or its own content hold
// it.
import { timestamp } from '#async/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import { cloneJson, type KubeObject, type ObjectMeta, type Revision, type Int64 } from '#apimachinery/meta/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { decodeObject, encodeObject, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

/** The options of a deletion; see DeleteOptions of Kubernetes. */
export interface DeleteOptions {
  readonly uid?: string
  readonly resourceVersion?: string
  readonly gracePeriodSeconds?: Int64
  readonly propagationPolicy?: string
}

/**
 * The grace period in seconds of a deletion that asks for `asked`. A second deletion may only shorten the grace period
 * of the first.
 */
export function gracePeriodOf(
  { deletionTimestamp, deletionGracePeriodSeconds: pending = 0 }: ObjectMeta,
  asked: Int64 | undefined,
  ofKind: (asked: Int64 | undefined) => Int64 | undefined,
): Int64 {
  const isPending = deletionTimestamp !== undefined && pending > 0
  return isPending && (asked === undefined || asked >= pending) ? pending : (ofKind(asked) ?? 0)
}

/**
 * The propagation policy if the client names none; undefined leaves the finalizers as they are. Kinds that predate
 * garbage collection orphan their dependents, unless a finalizer already decides.
 */
export function defaultPolicy({ metadata }: KubeObject, strategy: ResourceDefinition['strategy']): string | undefined {
  const decided = metadata.finalizers?.some((name) => name === 'orphan' || name === 'foregroundDeletion') ?? false
  return strategy.orphansByDefault === true && !decided && metadata.deletionTimestamp === undefined
    ? 'Orphan'
    : undefined
}

/** The finalizers after a deletion with this propagation policy. Throws 400 for an unknown policy. */
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

/** Marks the object as being deleted. False if the object was already marked like this. Mutates `object`. */
export function markTerminating(
  object: KubeObject,
  {
    finalizers,
    grace,
    now,
    deletedByController,
  }: { finalizers: string[]; grace: Int64; now: number; deletedByController: boolean },
): boolean {
  const { metadata } = object
  const before = cloneJson(metadata)
  metadata.finalizers = finalizers
  if (finalizers.length === 0) delete metadata.finalizers
  if (metadata.deletionTimestamp === undefined) {
    metadata.deletionTimestamp = deletionTime(now, grace)
    if (deletedByController) return true
    metadata.deletionGracePeriodSeconds = grace
    if (metadata.generation !== undefined) metadata.generation++
  } else if (grace < (metadata.deletionGracePeriodSeconds ?? 0)) {
    metadata.deletionTimestamp = deletionTime(now, grace)
    metadata.deletionGracePeriodSeconds = grace
  }
  return !jsonEqual(before, metadata)
}

/**
 * The end of the grace period. As in Go, the period is a count of nanoseconds in 64 bits, so a very long period
 * overflows.
 */
function deletionTime(now: number, grace: Int64): string {
  const nanoseconds = BigInt.asIntN(64, BigInt(grace) * 1_000_000_000n)
  return timestamp(now + Number(nanoseconds / 1_000_000n))
}

/**
 * The bytes of a removed object as the client gets them. An object of a kind with a grace period gets a
 * deletionTimestamp, even if it was removed at once.
 */
export function finalState(bytes: Uint8Array, strategy: ResourceDefinition['strategy'], now: number): Uint8Array {
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

/** True while a namespace has spec.finalizers; its controller removes them when the content is gone. */
export function hasSpecFinalizers(object: KubeObject): boolean {
  if (object.kind !== 'Namespace' || object.apiVersion !== 'v1') return false
  const spec = object['spec'] as { finalizers?: string[] } | undefined
  return (spec?.finalizers?.length ?? 0) > 0
}
