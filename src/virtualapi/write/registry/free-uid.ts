// Decides whether an object that a member reports may keep its uid. A member may choose any uid. If it chose the uid of
// another object, the garbage collector, tokens and owner references would take the new object for that one.
import { parseApiVersion, type KubeObject } from '#apimachinery/meta/index.ts'
import { decodeMetadata } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'

/**
 * True if no object of the logical cluster has the uid of the new object, and no owner reference has this uid with
 * another kind, name or group. The object may have dependents already, because it may be created again.
 */
export function isFreeUid(
  { kind, metadata }: KubeObject,
  { definition, objects }: { readonly definition: ResourceDefinition; readonly objects: ClusterObjects },
): boolean {
  const { uid = '', name } = metadata
  for (const resource of objects.resources()) if (uidsOf(objects, resource).has(uid, objects)) return false
  return objects
    .dependents(uid)
    .every(({ bytes }) =>
      (decodeMetadata(bytes).ownerReferences ?? []).every(
        (owner) =>
          owner.uid !== uid ||
          (owner.kind === kind &&
            owner.name === name &&
            parseApiVersion(owner.apiVersion).group === definition.info.group),
      ),
    )
}

type Key = Pick<Entry['key'], 'namespace' | 'name'>

/**
 * The uids of all objects of a resource. A refresh reads only the objects that changed since the last one, if it can.
 */
class Uids {
  readonly #resource: string
  /** By uid: the object that was last seen with it, which may be gone by now. Two objects never share a uid. */
  readonly #lastSeen = new Map<string, Key>()
  #changes = -1
  #sizeAfterList = 0

  constructor(resource: string) {
    this.#resource = resource
  }

  has(uid: string, objects: ClusterObjects): boolean {
    const key = this.#lastSeen.get(uid)
    if (key === undefined) return false
    if (objects.get(this.#resource, key.namespace, key.name)?.facts.uid === uid) return true
    this.#lastSeen.delete(uid)
    return false
  }

  refresh(objects: ClusterObjects): void {
    const changes = objects.changes(this.#resource)
    if (changes === this.#changes) return
    const isFull = this.#lastSeen.size > 2 * this.#sizeAfterList + 1024
    const changed = this.#changes < 0 || isFull ? undefined : objects.changedNames(this.#resource, this.#changes)
    this.#changes = changes
    if (changed === undefined) {
      this.#lastSeen.clear()
      for (const entry of objects.list({ resource: this.#resource })) this.#see(entry)
      this.#sizeAfterList = this.#lastSeen.size
    } else for (const { namespace, name } of changed) this.#see(objects.get(this.#resource, namespace, name))
  }

  #see(entry: Entry | undefined): void {
    if (entry?.facts.uid !== undefined) this.#lastSeen.set(entry.facts.uid, entry.key)
  }
}

/**
 * The uids by logical cluster and resource. They are dropped when the logical cluster is evicted. Only logical clusters
 * whose objects members create have them.
 */
const known = new WeakMap<ClusterObjects, Map<string, Uids>>()

function uidsOf(objects: ClusterObjects, resource: string): Uids {
  const own = known.get(objects) ?? new Map<string, Uids>()
  known.set(objects, own)
  const uids = own.get(resource) ?? new Uids(resource)
  own.set(resource, uids)
  uids.refresh(objects)
  return uids
}
