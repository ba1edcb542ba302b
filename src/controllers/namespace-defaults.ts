// Creates what every namespace must have: ServiceAccount `default` and ConfigMap `kube-root-ca.crt`. The namespaces
// that every logical cluster is created with have both in the base layer: nothing is written for them until one is
// deleted.
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { clusterInKey, keyFor, parseKey, type KubeClient } from '#client/index.ts'
import type { ObjectKey } from '#reconcile/object-graph/index.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'
import type { ControllerContext } from './framework.ts'
import { configMaps, serviceAccounts } from './resources.ts'

const accountName = 'default'
const rootCaName = 'kube-root-ca.crt'
/** Delay after a deletion: the namespace or the logical cluster may be about to be deleted as a whole. */
const recreateAfterMs = 500

/** Watches namespaces and the two objects in each, until the signal aborts. */
export async function startNamespaceDefaults(context: ControllerContext): Promise<void> {
  const { graph, rootCa, log, signal } = context
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  // A key without a namespace is that of a namespace to complete; a key with a namespace is that of a ConfigMap to
  // repair.
  const namespaceKey = ({ cluster, namespace }: ObjectKey): string => keyFor({ cluster, name: namespace })
  const stops = [
    graph.follow('namespaces', ({ key: { cluster, name }, exists, isNew, deleting }) => {
      if (exists && isNew && !deleting) queue.add(keyFor({ cluster, name }))
    }),
    graph.follow('serviceaccounts', ({ key, exists }) => {
      if (key.name === accountName && !exists) queue.addAfter(namespaceKey(key), recreateAfterMs)
    }),
    graph.follow('configmaps', ({ key, exists, object }) => {
      if (key.name !== rootCaName) return
      if (!exists) queue.addAfter(namespaceKey(key), recreateAfterMs)
      else if (!isCurrent(object(), rootCa)) queue.add(keyFor(key))
    }),
  ]
  await runController({
    name: 'namespace-defaults',
    queue,
    log,
    signal,
    reconcile: (key, signal) => completeNamespace(key, context, signal),
  })
  for (const stop of stops) stop()
}

async function completeNamespace(
  key: string,
  { graph, clientOf, rootCa }: ControllerContext,
  signal: AbortSignal,
): Promise<void> {
  const { cluster = '', name, namespace = name } = parseKey(key)
  const client = clientOf(cluster)
  const found = await graph.get({ cluster, resource: 'namespaces', namespace: '', name: namespace }, signal)
  if (client === undefined || found === undefined || found.metadata.deletionTimestamp !== undefined) return
  if (namespace !== name) return repairRootCa(client, namespace, rootCa, signal)
  const account = { cluster, resource: 'serviceaccounts', namespace, name: accountName }
  if ((await graph.get(account, signal)) === undefined) {
    const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: accountName, namespace } }
    await createIfAbsent(client, serviceAccounts, object, signal)
  }
  const rootCaKey = { cluster, resource: 'configmaps', namespace, name: rootCaName }
  if ((await graph.get(rootCaKey, signal)) === undefined)
    await createIfAbsent(client, configMaps, rootCaConfigMap(namespace, rootCa), signal)
}

async function createIfAbsent(
  client: KubeClient,
  gvr: Parameters<KubeClient['create']>[0],
  object: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create(gvr, object, { signal })
  } catch (error) {
    // The object exists already, or the namespace or logical cluster is being deleted and needs none.
    const isDone = isStatusError(error, 'AlreadyExists') || isStatusError(error, 'NotFound')
    if (!isDone && !isTerminating(error)) throw error
  }
}

function isTerminating(error: unknown): boolean {
  return (
    isStatusError(error, 'Forbidden') &&
    (error.status.details?.causes ?? []).some(({ reason }) => reason === 'NamespaceTerminating')
  )
}

/** Restores the content after an edit, or after a change of the CA. Labels and annotations are kept. */
async function repairRootCa(client: KubeClient, namespace: string, rootCa: string, signal: AbortSignal): Promise<void> {
  const current = await client.tryGet(configMaps, { namespace, name: rootCaName }, { signal })
  if (current === undefined || isCurrent(current, rootCa)) return
  const { binaryData: _, ...rest } = current
  await client.update(
    configMaps,
    { ...rest, metadata: current.metadata, apiVersion: 'v1', kind: 'ConfigMap', data: { 'ca.crt': rootCa } },
    { signal },
  )
}

function isCurrent(object: KubeObject | undefined, rootCa: string): boolean {
  const data = object?.['data']
  return isJsonObject(data) && data['ca.crt'] === rootCa && Object.keys(data).length === 1
}

function rootCaConfigMap(namespace: string, rootCa: string): KubeObject {
  return {
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: {
      name: rootCaName,
      namespace,
      annotations: { 'kubernetes.io/description': 'The certificate authority of this API server.' },
    },
    data: { 'ca.crt': rootCa },
  }
}
