// What is ours in a member that leaves: namespaces of our logical clusters, then our own parts, our identity last.
import type { GroupVersionResource, KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import {
  installationKeysName,
  locatorAnnotation,
  managedLabel,
  memberParts,
  parseAnnotation,
  systemNamespace,
} from '../../crds/index.ts'

const core = (resource: string): GroupVersionResource => ({ group: '', version: 'v1', resource })
const namespaces = core('namespaces')
const secrets = core('secrets')

/** What joining and syncing made in our namespace; the identity by which we delete it is the last. */
const parts: readonly (readonly [GroupVersionResource, string])[] = [
  [{ group: 'apps', version: 'v1', resource: 'deployments' }, memberParts.nameserver],
  [core('services'), memberParts.nameserver],
  [core('configmaps'), memberParts.nameserver],
  [core('serviceaccounts'), memberParts.nameserver],
  // Its token and the Secret end with it.
  [core('serviceaccounts'), memberParts.syncerAccount],
]

/**
 * Deletes what is left of the logical clusters with these ids, and our namespace with nameserver, identity and token in it.
 * Namespaces of another installation that shares the member are not touched: its ids are others. Nor is our namespace where
 * the member is the host of an installation: there it holds the keys of all its logical clusters, and only our parts go.
 */
export async function removeOurs(
  member: KubeClient,
  clusterIds: ReadonlySet<string>,
  signal: AbortSignal,
): Promise<void> {
  const { items } = await member.list<KubeObject>(namespaces, { labelSelector: `${managedLabel}=true`, signal })
  for (const item of items) {
    const { name = '', uid, deletionTimestamp } = item.metadata
    const clusterId = parseAnnotation(item, locatorAnnotation)['clusterId']
    if (deletionTimestamp !== undefined || typeof clusterId !== 'string' || !clusterIds.has(clusterId)) continue
    await member.delete(namespaces, { name }, { ...(uid && { uid }), signal }).catch(tolerate('NotFound'))
  }
  const keys = { namespace: systemNamespace, name: installationKeysName }
  if ((await member.tryGet(secrets, keys, { signal })) === undefined) {
    await member.delete(namespaces, { name: systemNamespace }, { signal }).catch(tolerate('NotFound'))
    return
  }
  for (const [gvr, name] of parts)
    await member.delete(gvr, { namespace: systemNamespace, name }, { signal }).catch(tolerate('NotFound'))
}
