// Conversion of an object that a webhook or a policy mutated back into the object of the request.
import { isDeepStrictEqual } from 'node:util'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { internalError, isStatusError } from '#apimachinery/status/index.ts'
import { isOwnAnnotation } from '#crds/index.ts'
import { sizeWithin } from '#virtualapi/kinds/resources/object-size.ts'
import { UndecodableError } from '#virtualapi/kinds/resources/typed/decode-errors.ts'
import type { Shown } from './shown.ts'

/**
 * Replaces the content of `object` (the stored form) in place. Resolves with true if it has changed. Rejects with
 * InternalError if `mutated` cannot be decoded or is too large; with `isStrict`, for unknown fields, too. Rejects with
 * the error of `context.grown`.
 */
export async function takeMutated(
  { form, request }: Shown,
  mutated: KubeObject,
  object: KubeObject,
  options: { readonly isStrict?: boolean } = {},
): Promise<boolean> {
  const size = sizeWithin(mutated, object)
  if (typeof size === 'string') throw internalError(`what admission made of the object is too large: ${size}`)
  request.context.grown?.(size)
  const taken = await taking(() => form.take(mutated, object, options))
  if (request.kind === undefined) {
    if (request.operation === 'CREATE') restoreNewMeta(taken, object)
    keepOwnAnnotations(taken, object)
  }
  if (isDeepStrictEqual(taken, object)) return false
  replace(object, taken)
  if (request.kind === undefined) request.definition.strategy.applyDefaults?.(object, request.context)
  return true
}

/** A patched object that cannot be decoded is an error of the webhook or the policy, not of the client. */
async function taking(take: () => KubeObject | Promise<KubeObject>): Promise<KubeObject> {
  try {
    return await take()
  } catch (error) {
    if (!isStatusError(error) || error.code >= 500) throw error
    // As upstream, without the sentence that a client gets about its own body.
    throw internalError(error instanceof UndecodableError ? error.why : error.message, error)
  }
}

/** Restores the metadata that only the server gives a new object, and a name and namespace that were removed. */
function restoreNewMeta(taken: KubeObject, before: KubeObject): void {
  const { uid, creationTimestamp, name, namespace } = before.metadata
  const { metadata } = taken
  if (uid !== undefined) metadata.uid = uid
  if (creationTimestamp !== undefined) metadata.creationTimestamp = creationTimestamp
  if (!metadata.name && name !== undefined) metadata.name = name
  if (!metadata.namespace && namespace) metadata.namespace = namespace
}

/**
 * Restores the annotations of kcp, which the scheduler and the syncers read: no webhook or policy of a tenant may write
 * them.
 */
function keepOwnAnnotations(taken: KubeObject, before: KubeObject): void {
  const others = Object.entries(taken.metadata.annotations ?? {}).filter(([name]) => !isOwnAnnotation(name))
  const own = Object.entries(before.metadata.annotations ?? {}).filter(([name]) => isOwnAnnotation(name))
  if (others.length + own.length > 0) taken.metadata.annotations = Object.fromEntries([...others, ...own])
  else delete taken.metadata.annotations
}

/** Replaces the content in place, because callers hold references to the object and to its metadata. */
function replace(object: KubeObject, { metadata, ...rest }: Partial<KubeObject>): void {
  // The options of a connection have no metadata.
  const kept = (object as Partial<KubeObject>).metadata ?? {}
  for (const member of Object.keys(kept)) Reflect.deleteProperty(kept, member)
  Object.assign(kept, metadata)
  for (const member of Object.keys(object)) if (member !== 'metadata') Reflect.deleteProperty(object, member)
  Object.assign(object, rest)
}
