// Decides whether a copy from elsewhere may keep its uid. The elsewhere is a member, which may choose any uid: that of another
// object would make the garbage collector, tokens and owners take the copy for that object.
import { parseApiVersion, type KubeObject } from '../../apimachinery/meta/index.ts'
import { decodeMetadata } from '../resources/object-bytes.ts'
import type { ClusterObjects } from '../../store/hub/index.ts'
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
  if (objects.list({ resource: definition.storageKey }).some(({ facts }) => facts.uid === uid)) return false
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
