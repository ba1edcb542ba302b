// Deletes everything of this installation in a member: namespaces of logical clusters, then our own objects, the
// identity of the syncer last.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  adoptableLabel,
  clusterLabel,
  installationKeysName,
  locatorAnnotation,
  managedLabel,
  memberParts,
  namespaceLabelPrefix,
  otherOwnerOf,
  parseAnnotation,
  systemNamespace,
} from '#crds/index.ts'

const core = (resource: string): GroupVersionResource => ({ group: '', version: 'v1', resource })
const namespaces = core('namespaces')
const secrets = core('secrets')

const clusterRoles = { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles' } as const
const clusterRoleBindings = { ...clusterRoles, resource: 'clusterrolebindings' } as const

/**
 * The objects in our namespace, and cluster-scoped objects. The last ones are the identity that these deletions need.
 */
const parts: readonly (readonly [GroupVersionResource, string])[] = [
  [{ group: 'apps', version: 'v1', resource: 'deployments' }, memberParts.nameserver],
  [{ group: 'apps', version: 'v1', resource: 'deployments' }, memberParts.gateway],
  [core('secrets'), memberParts.agentJoin],
  [core('services'), memberParts.nameserver],
  [core('services'), memberParts.gateway],
  [core('services'), memberParts.agent],
  [core('secrets'), memberParts.gateway],
  [core('serviceaccounts'), memberParts.gateway],
  [core('configmaps'), memberParts.nameserver],
  [core('serviceaccounts'), memberParts.nameserver],
  // The ClusterRole owns the rest, with the identity: see memberObjects. Members that joined with an older release
  // forbid its deletion.
  [clusterRoles, memberParts.syncerAccount],
  // The member deletes its token Secret with it.
  [core('serviceaccounts'), memberParts.syncerAccount],
]

interface Removal {
  /** The logical clusters. */
  readonly clusterIds: ReadonlySet<string>
  /** Whose member it is, as in `installationAnnotation`. */
  readonly installation: string | undefined
  /** Whether the member is in pull mode: a printed manifest may have made its objects. Default false. */
  readonly isPulled?: boolean
}

/** The rights of other programs than the syncer. No object owns them where a printed manifest made them. */
const unowned = [memberParts.nameserver, memberParts.gateway]

/** The merge patch that removes our marks from a namespace. */
function withoutMarks({ metadata: { uid, labels = {} } }: KubeObject): object {
  const ours = Object.keys(labels).filter(
    (label) => [managedLabel, clusterLabel, adoptableLabel].includes(label) || label.startsWith(namespaceLabelPrefix),
  )
  const removed = Object.fromEntries(ours.map((label) => [label, null]))
  return { metadata: { uid, labels: removed, annotations: { [locatorAnnotation]: null } } }
}

/**
 * Deletes the namespaces of the logical clusters with these ids, and our namespace with everything in it. Namespaces of
 * other installations stay: their ids differ. If the member is the host of an installation, our namespace contains its
 * keys: then only the objects of the member are deleted in it. If another installation (see `installationAnnotation`)
 * has taken the member over, that namespace is its own and stays. Rejects with StatusError.
 */
export async function removeInstallation(
  member: KubeClient,
  { clusterIds, installation, isPulled = false }: Removal,
  signal: AbortSignal,
): Promise<void> {
  const { items } = await member.list<KubeObject>(namespaces, { labelSelector: `${managedLabel}=true`, signal })
  for (const item of items) {
    const { name = '', uid, deletionTimestamp } = item.metadata
    const clusterId = parseAnnotation(item, locatorAnnotation)['clusterId']
    if (deletionTimestamp !== undefined || typeof clusterId !== 'string' || !clusterIds.has(clusterId)) continue
    if (!name.startsWith(`${clusterId}-`)) {
      // It was adopted: it is the member's own again, with all that is in it.
      await member.patch(namespaces, { name }, 'merge', withoutMarks(item), { signal }).catch(tolerate('NotFound'))
      continue
    }
    await member.delete(namespaces, { name }, { ...(uid && { uid }), signal }).catch(tolerate('NotFound'))
  }
  const account = { namespace: systemNamespace, name: memberParts.syncerAccount }
  const found = await member.tryGet<KubeObject>(core('serviceaccounts'), account, { signal })
  if (otherOwnerOf(found, installation) !== undefined) return
  const keys = { namespace: systemNamespace, name: installationKeysName }
  if (isPulled)
    for (const name of unowned)
      for (const gvr of [clusterRoleBindings, clusterRoles])
        await member.delete(gvr, { name }, { signal }).catch(tolerate('NotFound', 'Forbidden'))
  if ((await member.tryGet(secrets, keys, { signal })) === undefined) {
    await member.delete(namespaces, { name: systemNamespace }, { signal }).catch(tolerate('NotFound'))
    // The agent goes with the namespace, and this may come too late: without its account, the ClusterRole gives nothing.
    if (isPulled)
      await member
        .delete(clusterRoles, { name: memberParts.syncerAccount }, { signal })
        .catch(tolerate('NotFound', 'Forbidden', 'Unauthorized', 'ServiceUnavailable'))
    return
  }
  for (const [gvr, name] of parts)
    await member
      .delete(gvr, { name, ...(gvr.resource !== 'clusterroles' && { namespace: systemNamespace }) }, { signal })
      // Without the ClusterRole, nothing is left that the identity may do.
      .catch(tolerate('NotFound', 'Forbidden', 'Unauthorized'))
}
