// Protection of the annotations, labels and finalizers that the installation writes on tenants' objects. Tenants can
// read them; only our own processes can write them.
import type { KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import { heldAnnotation, isOwnAnnotation, isOwnFinalizer, isOwnLabel } from '#crds/index.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'
import { mayWriteOwnFields } from './own-fields.ts'

/** Reverts a tenant's changes of these fields with a warning. An update that leaves the fields out keeps them. */
export const installationFields: AdmissionPlugin = {
  name: 'InstallationFields',
  mutate({ context, operation }, object, old) {
    if (mayWriteOwnFields(context)) return
    const ignored = operation === 'CREATE' ? 'was ignored' : 'was left unchanged'
    const refuse = (field: string, name: string): void => {
      context.warnings.push(`metadata.${field}: "${name}" is set by kcp and ${ignored}`)
    }
    restoreEntries({ field: 'annotations', isOurs: (name) => isOwn(name, object) }, object, old, refuse)
    restoreEntries({ field: 'labels', isOurs: isOwnLabel }, object, old, refuse)
    restoreFinalizers(object.metadata, old?.metadata.finalizers ?? [], refuse)
  },
}

type Refuse = (field: string, name: string) => void

function restoreEntries(
  { field, isOurs }: { readonly field: 'annotations' | 'labels'; readonly isOurs: (name: string) => boolean },
  { metadata }: KubeObject,
  old: KubeObject | undefined,
  refuse: Refuse,
): void {
  if (!hasName(metadata[field], isOurs) && !hasName(old?.metadata[field], isOurs)) {
    // Webhooks never get an empty map, as with kube-apiserver.
    if (metadata[field] !== undefined && !hasName(metadata[field], () => true)) Reflect.deleteProperty(metadata, field)
    return
  }
  const previous = Object.fromEntries(Object.entries(old?.metadata[field] ?? {}).filter(([name]) => isOurs(name)))
  const entries = { ...metadata[field] }
  for (const [name, value] of Object.entries(entries)) {
    if (!isOurs(name) || previous[name] === value) continue
    refuse(field, name)
    Reflect.deleteProperty(entries, name)
  }
  Object.assign(entries, previous)
  if (Object.keys(entries).length > 0) metadata[field] = entries
  else Reflect.deleteProperty(metadata, field)
}

/** True if an entry is ours. This is false for most objects, so that nothing is copied. */
function hasName(entries: Readonly<Record<string, string>> | undefined, isOurs: (name: string) => boolean): boolean {
  for (const name in entries) if (isOurs(name)) return true
  return false
}

function restoreFinalizers(metadata: ObjectMeta, old: readonly string[], refuse: Refuse): void {
  const wanted = metadata.finalizers ?? []
  if (wanted.length === 0 && old.length === 0) {
    delete metadata.finalizers
    return
  }
  const previous = new Set(old.filter(isOwnFinalizer))
  const kept = wanted.filter((finalizer) => {
    if (!isOwnFinalizer(finalizer) || previous.has(finalizer)) return true
    refuse('finalizers', finalizer)
    return false
  })
  const there = new Set(kept)
  const missing = [...previous].filter((finalizer) => !there.has(finalizer))
  if (kept.length === wanted.length && missing.length === 0) return
  const finalizers = [...kept, ...missing]
  if (finalizers.length > 0) metadata.finalizers = finalizers
  else delete metadata.finalizers
}

/**
 * A tenant may run the Deployment controller of Kubernetes. This controller copies annotations of a Deployment to its
 * ReplicaSets, and makes no progress while they differ. So the tenant may write the annotation in which our scheduler
 * gives its reasons to a ReplicaSet.
 */
function isOwn(name: string, { kind }: KubeObject): boolean {
  return isOwnAnnotation(name) && !(name === heldAnnotation && kind === 'ReplicaSet')
}
