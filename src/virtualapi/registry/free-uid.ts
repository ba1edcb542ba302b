// Decides whether a copy from elsewhere may keep its uid. The elsewhere is a member, which may choose any uid: that of another
// object would make the garbage collector, tokens and owners take the copy for that object.
import { parseApiVersion, type KubeObject } from '../../apimachinery/meta/index.ts'
import { decodeMetadata } from '../resources/object-bytes.ts'
import type { ClusterObjects, Entry } from '../../store/hub/index.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'

/**
 * True if no object of this kind has the uid of the new object, and no object names it as the uid of another owner. Dependents may
 * be there before a copy that is created again.
 */
export function isFreeUid(
  { kind, metadata }: KubeObject,
  { definition, objects }: { readonly definition: ResourceDefinition; readonly objects: ClusterObjects },
): boolean {
  const { uid = '', name } = metadata
  if (uidsOf(objects, definition.storageKey).has(uid)) return false
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

/** The uids of all objects of a resource: what changed since the last question is read, not every object. */
class Uids {
  readonly #resource: string
  readonly #byName = new Map<string, string>()
  /** How many objects have the uid; a tenant's own objects never share one. */
  readonly #counts = new Map<string, number>()
  #changes = -1

  constructor(resource: string) {
    this.#resource = resource
  }

  has(uid: string): boolean {
    return this.#counts.has(uid)
  }

  refresh(objects: ClusterObjects): void {
    const changes = objects.changes(this.#resource)
    if (changes === this.#changes) return
    const changed = this.#changes < 0 ? undefined : objects.changedNames(this.#resource, this.#changes)
    if (changed === undefined) {
      this.#byName.clear()
      this.#counts.clear()
      for (const entry of objects.list({ resource: this.#resource })) this.#set(entry.key, entry)
    } else for (const key of changed) this.#set(key, objects.get(this.#resource, key.namespace, key.name))
    this.#changes = changes
  }

  #set({ namespace, name }: Pick<Entry['key'], 'namespace' | 'name'>, entry: Entry | undefined): void {
    const key = `${namespace}/${name}`
    const [before, after] = [this.#byName.get(key), entry?.facts.uid]
    if (before === after) return
    if (before !== undefined) {
      const left = (this.#counts.get(before) ?? 1) - 1
      if (left === 0) this.#counts.delete(before)
      else this.#counts.set(before, left)
    }
    if (after === undefined) this.#byName.delete(key)
    else {
      this.#byName.set(key, after)
      this.#counts.set(after, (this.#counts.get(after) ?? 0) + 1)
    }
  }
}

/** By resource; they go with the logical cluster when it is evicted. Only resources that members copy up are in them. */
const known = new WeakMap<ClusterObjects, Map<string, Uids>>()

function uidsOf(objects: ClusterObjects, resource: string): Uids {
  const own = known.get(objects) ?? new Map<string, Uids>()
  known.set(objects, own)
  const uids = own.get(resource) ?? new Uids(resource)
  own.set(resource, uids)
  uids.refresh(objects)
  return uids
}
