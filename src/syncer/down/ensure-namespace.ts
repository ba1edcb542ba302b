// Creates the namespace in a member, with the root CA that every pod in it needs.
import type { ClusterId, KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, isStatusError, serviceUnavailable } from '#apimachinery/status/index.ts'
import {
  clusterLabel,
  locatorAnnotation,
  managedLabel,
  namespaceLabelPrefix,
  syncerFieldManager,
  type AdoptedNamespace,
  type Locator,
} from '#crds/index.ts'
import { isSubset } from '#apimachinery/json/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { gvrs, type CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile, Scope } from '#syncer/context/scope.ts'
import { isEndingNamespace } from '#syncer/rules/ending.ts'
import { namespaceLabel } from '#syncer/transform/dependents-down.ts'
import { forgetAdoption } from './release-namespace.ts'
import { rootCaConfigMap } from '#syncer/transform/pod-template.ts'

/** Resolves when the namespace is in the member. Rejects with Conflict if it belongs to somebody else. */
export async function ensureNamespace(reconcile: Reconcile): Promise<void> {
  const { cluster, namespace, clusterId, memberNamespace: name } = reconcile
  if (clusterId === undefined || name === undefined)
    throw serviceUnavailable(`the id of logical cluster "${cluster}" is not known yet`)
  if (reconcile.context.releasing.has(`${cluster}|${namespace}`))
    throw serviceUnavailable(`namespace "${name}" is being given back to the member`)
  const known = reconcile.liveNamespace
  if (reconcile.adopted !== undefined && known?.metadata.uid !== reconcile.adopted.uid)
    await refuseLost(reconcile, reconcile.adopted)
  if (known === undefined) await createNamespace(reconcile, clusterId, name)
  else {
    refuseForeign(known as KubeObject, { clusterId, namespace }, name)
    await labelNamespace(reconcile, known, namespaceLabels(reconcile, clusterId))
  }
  await ensureRootCa(reconcile, name)
}

/**
 * Throws ServiceUnavailable for an adopted namespace that our cache lacks. If the member has none of this uid any more,
 * the record of the adoption is removed first: the next attempt makes an ordinary copy of the namespace.
 */
async function refuseLost(reconcile: Reconcile, { namespace, uid, member }: AdoptedNamespace): Promise<never> {
  const { downstream } = reconcile.context
  const found = await downstream.tryGet<KubeObject>(gvrs.namespaces, { name: namespace }, { signal: reconcile.signal })
  if (found?.metadata.uid !== uid) await forgetAdoption(reconcile, member)
  throw serviceUnavailable(`namespace "${namespace}", which was adopted from the member, is not in its cache`)
}

async function createNamespace(reconcile: Reconcile, clusterId: ClusterId, name: string): Promise<void> {
  const { context, cluster, namespace, upstreamNamespace, signal } = reconcile
  if (isEndingNamespace(reconcile))
    throw serviceUnavailable(`namespace "${namespace}" is being deleted: it is not created in a member any more`)
  const uid = upstreamNamespace?.metadata.uid ?? ''
  const locator: Locator = { cluster, clusterId, namespace: '', name: namespace, uid }
  const metadata = {
    name,
    labels: namespaceLabels(reconcile, clusterId),
    annotations: { [locatorAnnotation]: JSON.stringify(locator) },
  }
  try {
    await context.downstream.create(
      gvrs.namespaces,
      { apiVersion: 'v1', kind: 'Namespace', metadata },
      { fieldManager: syncerFieldManager, signal },
    )
  } catch (error) {
    if (!isStatusError(error, 'AlreadyExists')) throw error
    // Our cache may be behind; otherwise the namespace belongs to somebody else.
    const found = await context.downstream.get<KubeObject>(gvrs.namespaces, { name }, { signal })
    refuseForeign(found, { clusterId, namespace }, name)
  }
}

async function labelNamespace(
  { context, signal }: Reconcile,
  { metadata: { name = '', uid, labels: own = {} } }: CachedObject,
  labels: Readonly<Record<string, string>>,
): Promise<void> {
  const stale = Object.keys(own).filter((label) => label.startsWith(namespaceLabelPrefix) && !(label in labels))
  if (stale.length === 0 && isSubset(own, labels)) return
  const removed = Object.fromEntries(stale.map((label) => [label, null]))
  // A merge patch with the uid: a namespace that was created again meanwhile is not labelled.
  const metadata = { uid, labels: { ...labels, ...removed } }
  await context.downstream.patch(gvrs.namespaces, { name }, 'merge', { metadata }, { signal })
}

/**
 * The labels of the namespace in the member. With the Pod Security level, the member too refuses pods beyond it: pods
 * of an old copy, and pods that its own controllers changed. The labels of the upstream namespace serve selectors of
 * NetworkPolicies, under names that no controller of the member acts on.
 */
function namespaceLabels({ context, cluster, upstreamNamespace }: Scope, clusterId: string): Record<string, string> {
  const { labels = {} } = upstreamNamespace?.metadata ?? {}
  return {
    ...Object.fromEntries(Object.entries(labels).map(([key, value]) => [namespaceLabel(key), value])),
    [managedLabel]: 'true',
    [clusterLabel]: clusterId,
    'pod-security.kubernetes.io/enforce': context.upstream.ids.podSecurityOf(cluster),
  }
}

function refuseForeign(
  object: KubeObject,
  { clusterId, namespace }: { readonly clusterId: string; readonly namespace: string },
  name: string,
): void {
  const locator = locatorOf(object)
  if (locator?.clusterId !== clusterId)
    throw conflict(gvrs.namespaces, name, 'it exists in the member and is not of this logical cluster')
  if (locator.name !== namespace)
    throw conflict(gvrs.namespaces, name, `it exists in the member for namespace "${locator.name}"`)
  if (object.metadata.deletionTimestamp !== undefined)
    throw serviceUnavailable(`namespace "${name}" is still being deleted in the member`)
}

/** The ConfigMap that pods mount beside their token: the CA of their logical cluster, and their upstream namespace. */
async function ensureRootCa(reconcile: Reconcile, name: string): Promise<void> {
  const { context, namespace, signal } = reconcile
  const source = reconcile.upstream('configmaps', 'kube-root-ca.crt')
  const ca = (source?.['data'] as Record<string, string> | undefined)?.['ca.crt'] ?? ''
  const data = { 'ca.crt': ca, namespace }
  if (isSubset(reconcile.live('configmaps', rootCaConfigMap)?.['data'], data)) return
  const metadata = { name: rootCaConfigMap, namespace: name, labels: { [managedLabel]: 'true' } }
  await context.downstream.patch(
    gvrs.configmaps,
    { namespace: name, name: rootCaConfigMap },
    'apply',
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data },
    { fieldManager: syncerFieldManager, force: true, signal },
  )
}
