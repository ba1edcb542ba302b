// Creates the namespace in a member, with the root CA that every pod in it needs.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, isStatusError, serviceUnavailable } from '#apimachinery/status/index.ts'
import {
  clusterLabel,
  locatorAnnotation,
  managedLabel,
  namespaceLabelPrefix,
  syncerFieldManager,
  type Locator,
} from '#crds/index.ts'
import { isEndingNamespace } from '#syncer/rules/ending.ts'
import { isSubset } from '#syncer/context/is-subset.ts'
import { gvrs } from '#syncer/context/resources.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  locatorOf,
  upstreamObject,
  type SyncContext,
  type Visit,
} from '#syncer/context/sync-context.ts'
import { namespaceLabel } from '#syncer/transform/dependents-down.ts'
import { rootCaConfigMap } from '#syncer/transform/pod-template.ts'

type UpstreamNamespace = Pick<Visit, 'cluster' | 'namespace'>

/** Resolves with the name of the namespace in the member. Rejects with Conflict if it belongs to somebody else. */
export async function ensureNamespace(
  context: SyncContext,
  upstreamNamespace: UpstreamNamespace,
  signal: AbortSignal,
): Promise<string> {
  const { downstream, upstream } = context
  const { cluster, namespace } = upstreamNamespace
  const clusterId = upstream.ids.idOf(cluster)
  const name = downstreamNamespaceOf(context, upstreamNamespace)
  if (clusterId === undefined || name === undefined)
    throw serviceUnavailable(`the id of logical cluster "${cluster}" is not known yet`)
  const known = downstreamObject(context, 'namespaces', '', name)
  if (known === undefined) {
    if (isEndingNamespace(context, upstreamNamespace))
      throw serviceUnavailable(`namespace "${namespace}" is being deleted: it is not created in a member any more`)
    const object = upstreamObject(context, 'namespaces', { cluster, namespace: '', name: namespace })
    const locator: Locator = { cluster, clusterId, namespace: '', name: namespace, uid: object?.metadata.uid ?? '' }
    const metadata = {
      name,
      labels: namespaceLabels(context, upstreamNamespace, clusterId),
      annotations: { [locatorAnnotation]: JSON.stringify(locator) },
    }
    try {
      await downstream.create(
        gvrs.namespaces,
        { apiVersion: 'v1', kind: 'Namespace', metadata },
        { fieldManager: syncerFieldManager, signal },
      )
    } catch (error) {
      if (!isStatusError(error, 'AlreadyExists')) throw error
      // Our cache may be behind; otherwise the namespace belongs to somebody else.
      refuseForeign(await downstream.get(gvrs.namespaces, { name }, { signal }), { clusterId, namespace }, name)
    }
  } else {
    refuseForeign(known as KubeObject, { clusterId, namespace }, name)
    const labels = namespaceLabels(context, upstreamNamespace, clusterId)
    const stale = Object.keys(known.metadata.labels ?? {}).filter(
      (label) => label.startsWith(namespaceLabelPrefix) && !(label in labels),
    )
    if (stale.length > 0 || !isSubset(known.metadata.labels, labels)) {
      const removed = Object.fromEntries(stale.map((label) => [label, null]))
      // A merge patch with the uid: a namespace that was created again meanwhile is not labelled.
      const metadata = { uid: known.metadata.uid, labels: { ...labels, ...removed } }
      await downstream.patch(gvrs.namespaces, { name }, 'merge', { metadata }, { signal })
    }
  }
  await ensureRootCa(context, upstreamNamespace, name, signal)
  return name
}

/**
 * The member refuses pods beyond the level too: those of an old copy, and those that its own controllers changed. Labels of the
 * upstream namespace are there for selectors of NetworkPolicies, under names that no controller of the member acts on.
 */
function namespaceLabels(
  context: SyncContext,
  { cluster, namespace }: UpstreamNamespace,
  clusterId: string,
): Record<string, string> {
  const labels = upstreamObject(context, 'namespaces', { cluster, namespace: '', name: namespace })?.metadata.labels
  return {
    ...Object.fromEntries(Object.entries(labels ?? {}).map(([key, value]) => [namespaceLabel(key), value])),
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
async function ensureRootCa(
  context: SyncContext,
  { cluster, namespace }: UpstreamNamespace,
  name: string,
  signal: AbortSignal,
): Promise<void> {
  const source = upstreamObject(context, 'configmaps', { cluster, namespace, name: 'kube-root-ca.crt' })
  const ca = (source?.['data'] as Record<string, string> | undefined)?.['ca.crt'] ?? ''
  const data = { 'ca.crt': ca, namespace }
  if (isSubset(downstreamObject(context, 'configmaps', name, rootCaConfigMap)?.['data'], data)) return
  const metadata = { name: rootCaConfigMap, namespace: name, labels: { [managedLabel]: 'true' } }
  await context.downstream.patch(
    gvrs.configmaps,
    { namespace: name, name: rootCaConfigMap },
    'apply',
    { apiVersion: 'v1', kind: 'ConfigMap', metadata, data },
    { fieldManager: syncerFieldManager, force: true, signal },
  )
}
