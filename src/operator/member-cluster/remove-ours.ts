// What is ours in a member that leaves: namespaces of our logical clusters, then our own parts, our identity last.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'
import { locatorAnnotation, managedLabel, parseAnnotation, systemNamespace } from '../../crds/index.ts'

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

/**
 * Deletes what is left of the logical clusters with these ids, and our namespace with nameserver, identity and token in it.
 * Namespaces of another installation that shares the member are not touched: its ids are others.
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
  await member.delete(namespaces, { name: systemNamespace }, { signal }).catch(tolerate('NotFound'))
}
