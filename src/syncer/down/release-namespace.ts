// Gives an adopted namespace back to the member: without our marks it is the member's own again, with all that is left
// in it. The logical cluster forgets the name, so its next copy of the namespace is an ordinary one.
import { sleep } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import {
  adoptableLabel,
  adoptedNamespaceAnnotation,
  clusterLabel,
  locatorAnnotation,
  managedLabel,
  namespaceLabelPrefix,
  type AdoptedNamespace,
} from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import { syncedKinds } from '#syncer/rules/synced-kinds.ts'
import { rootCaConfigMap } from '#syncer/transform/pod-template.ts'

/** Removes our copies and our marks from the namespace in the member, then the record upstream. */
export async function releaseNamespace(reconcile: Reconcile, adopted: AdoptedNamespace): Promise<void> {
  const { context, liveNamespace: object, cluster, namespace, signal } = reconcile
  const { member, log, downstream, releasing } = context
  const key = `${cluster}|${namespace}`
  if (releasing.has(key)) return
  log.info('giving an adopted namespace back to the member', { cluster, namespace, name: adopted.namespace })
  // Other reconciles of the namespace write nothing there meanwhile: see ensureNamespace.
  releasing.add(key)
  try {
    while ((await deleteCopies(reconcile, adopted.namespace)) > 0) await sleep(settleMs, signal)
    if (object !== undefined && object.metadata.uid === adopted.uid)
      await downstream
        .patch(gvrs.namespaces, { name: adopted.namespace }, 'merge', releasePatch(object, adopted), { signal })
        .catch(tolerate('NotFound', 'Conflict'))
    await forgetAdoption(reconcile, member.name)
  } finally {
    releasing.delete(key)
  }
}

/** A write that was on its way when the release began has arrived after this time, milliseconds. */
const settleMs = 300

/**
 * Deletes the copies of what follows workloads, such as Services: an ordinary copy of the namespace goes as a whole.
 * Returns how many there were.
 */
async function deleteCopies({ context, clusterId, signal }: Reconcile, namespace: string): Promise<number> {
  const { downstream } = context
  let count = 0
  for (const { resource } of syncedKinds) {
    const { items } = await downstream.list<KubeObject>(gvrs[resource], {
      namespace,
      labelSelector: `${managedLabel}=true`,
      signal,
    })
    for (const live of items) {
      const { name = '', uid, deletionTimestamp } = live.metadata
      const isRootCa = resource === 'configmaps' && name === rootCaConfigMap
      if (deletionTimestamp !== undefined || (!isRootCa && locatorOf(live)?.clusterId !== clusterId)) continue
      count++
      const options = { ...(uid && { uid }), propagationPolicy: 'Background' as const, signal }
      await downstream.delete(gvrs[resource], { namespace, name }, options).catch(tolerate('NotFound', 'Conflict'))
    }
  }
  return count
}

/** The merge patch that makes the namespace what it was; the uid keeps it from a namespace that was created again. */
export function releasePatch({ metadata: { uid, labels = {} } }: CachedObject, { before }: AdoptedNamespace): object {
  const ours = Object.keys(labels).filter((label) => label.startsWith(namespaceLabelPrefix))
  const removed = [managedLabel, clusterLabel, adoptableLabel, ...ours].map((label) => [label, null] as const)
  return {
    metadata: {
      uid,
      labels: { ...Object.fromEntries(removed), ...before },
      annotations: { [locatorAnnotation]: null },
    },
  }
}

/** Removes the record upstream: the namespace of the member is not its copy any more. */
export async function forgetAdoption(
  { upstreamClient, namespace, upstreamNamespace, signal }: Reconcile,
  member: string,
): Promise<void> {
  const found = await upstreamClient.tryGet<KubeObject>(gvrs.namespaces, { name: namespace }, { signal })
  if (found === undefined || found.metadata.uid !== upstreamNamespace?.metadata.uid) return
  const text = found.metadata.annotations?.[adoptedNamespaceAnnotation]
  if (text === undefined || !text.includes(JSON.stringify(member))) return
  const metadata = {
    resourceVersion: found.metadata.resourceVersion,
    annotations: { [adoptedNamespaceAnnotation]: null },
  }
  await upstreamClient
    .patch(gvrs.namespaces, { name: namespace }, 'merge', { metadata }, { signal })
    .catch((error: unknown) => {
      if (!isStatusError(error, 'NotFound')) throw error
    })
}
