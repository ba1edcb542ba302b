// Conflicts between CustomResourceDefinitions and APIBindings of one logical cluster: each resource name belongs to one
// of them. A write that takes a name holds the name until the write has ended, so that of two writes at the same time
// one is refused.
import { fieldForbidden } from '#apimachinery/field/index.ts'
import { groupResourceText, type KubeObject } from '#apimachinery/meta/index.ts'
import { invalid } from '#apimachinery/status/index.ts'
import type { APIBinding } from '#crds/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { crdStorageKey } from '#virtualapi/catalog/apiextensions/crd-strategy.ts'
import { boundRevision } from '#virtualapi/catalog/sharing/binding-source.ts'
import { bindingKey } from '#virtualapi/catalog/sharing/sharing-index.ts'
import { isSystemDefinition } from '#virtualapi/catalog/sharing/system-definitions.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'

const holds = new WeakMap<ClusterObjects, Map<string, string>>()

/**
 * Holds the resource names that the object takes; undefined if it takes none. Throws Invalid if a name is taken. Dispose
 * of the result after the write has ended.
 */
export function holdNames(request: AdmissionRequest, object: KubeObject): Disposable | undefined {
  const { storageKey } = request.definition
  if (storageKey !== crdStorageKey && storageKey !== bindingKey) return undefined
  const { objects } = request.context
  const isBinding = storageKey === bindingKey
  const name = object.metadata.name ?? ''
  const wanted = isBinding ? boundNames(object as APIBinding) : request.operation === 'CREATE' ? [name] : []
  if (wanted.length === 0) return undefined
  const holder = isBinding ? `APIBinding "${name}"` : `CustomResourceDefinition "${name}"`
  const held = holds.get(objects) ?? new Map<string, string>()
  holds.set(objects, held)
  for (const resource of wanted) {
    const other = held.get(resource) ?? ownerOf(objects, resource, { binding: isBinding ? name : undefined })
    if (other !== undefined && other !== holder) throw taken(request, object, { resource, by: other })
  }
  const taking = wanted.filter((resource) => !held.has(resource))
  for (const resource of taking) held.set(resource, holder)
  return {
    [Symbol.dispose]: () => {
      for (const resource of taking) held.delete(resource)
    },
  }
}

function boundNames({ status }: APIBinding): string[] {
  return (status?.boundResources ?? []).map(groupResourceText)
}

/** The stored object that has a resource name, apart from a binding of this name and from the definition itself. */
function ownerOf(
  objects: ClusterObjects,
  resource: string,
  { binding }: { readonly binding: string | undefined },
): string | undefined {
  if (isSystemDefinition(resource)) return 'the server'
  if (binding !== undefined && objects.get(crdStorageKey, '', resource) !== undefined)
    return `CustomResourceDefinition "${resource}"`
  for (const entry of objects.list({ resource: bindingKey }))
    if (entry.key.name !== binding && boundRevision(entry)?.resources.includes(resource) === true)
      return `APIBinding "${entry.key.name}"`
  return undefined
}

function taken(
  { definition }: AdmissionRequest,
  { metadata }: KubeObject,
  { resource, by }: { resource: string; by: string },
) {
  const { group, kind } = definition.info
  return invalid({ group, kind }, metadata.name ?? '', [
    fieldForbidden('metadata.name', `resource "${resource}" belongs to ${by}: delete that first`),
  ])
}
