// What every namespace must have: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. Namespaces that a
// logical cluster is born with have both from the base layer: nothing is written for them unless somebody deleted it.
import { isJsonObject, type KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import { clusterInKey, keyFor, parseKey, type KubeClient } from '../../client/index.ts'
import { createKeyQueue, runController } from '../../reconcile/index.ts'
import type { ObjectPlace } from '../garbage/object-graph.ts'
import { configMaps, serviceAccounts } from '../resources.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'

const accountName = 'default'
const rootCaName = 'kube-root-ca.crt'
/** After a deletion: a logical cluster or a namespace that is being emptied shall not be written to. */
const healAfterMs = 500

/** Follows namespaces, and the two objects in each. */
export async function startNamespaceDefaults(context: LoopContext): Loop {
  const { graph, rootCa, log, signal } = context
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  // Of two kinds: a namespace to fill, and the ConfigMap in one to repair.
  const inNamespace = ({ cluster, namespace }: ObjectPlace): string => keyFor({ cluster, name: namespace })
  const stops = [
    graph.follow('namespaces', ({ place: { cluster, name }, exists, isNew, deleting }) => {
      if (exists && isNew && !deleting) queue.add(keyFor({ cluster, name }))
    }),
    graph.follow('serviceaccounts', ({ place, exists }) => {
      if (place.name === accountName && !exists) queue.addAfter(inNamespace(place), healAfterMs)
    }),
    graph.follow('configmaps', ({ place, exists, object }) => {
      if (place.name !== rootCaName) return
      if (!exists) queue.addAfter(inNamespace(place), healAfterMs)
      else if (!isCurrent(object(), rootCa)) queue.add(keyFor(place))
    }),
  ]
  await runController({
    name: 'namespace-defaults',
    queue,
    log,
    signal,
    reconcile: (key, visit) => fillNamespace(key, context, visit),
  })
  for (const stop of stops) stop()
}

async function fillNamespace(
  key: string,
  { graph, clusterOf, rootCa }: LoopContext,
  signal: AbortSignal,
): Promise<void> {
  const { cluster = '', name, namespace = name } = parseKey(key)
  const client = clusterOf(cluster)
  const found = await graph.get({ cluster, resource: 'namespaces', namespace: '', name: namespace }, signal)
  if (client === undefined || found === undefined || found.metadata.deletionTimestamp !== undefined) return
  if (namespace !== name) return repairRootCa(client, namespace, rootCa, signal)
  const account = { cluster, resource: 'serviceaccounts', namespace, name: accountName }
  if ((await graph.get(account, signal)) === undefined) {
    const object = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: accountName, namespace } }
    await createOnce(client, serviceAccounts, object, signal)
  }
  const authority = { cluster, resource: 'configmaps', namespace, name: rootCaName }
  if ((await graph.get(authority, signal)) === undefined)
    await createOnce(client, configMaps, rootCaConfigMap(namespace, rootCa), signal)
}

async function createOnce(
  client: KubeClient,
  gvr: Parameters<KubeClient['create']>[0],
  object: KubeObject,
  signal: AbortSignal,
): Promise<void> {
  try {
    await client.create(gvr, object, { signal })
  } catch (error) {
    // There already, or namespace or logical cluster on their way out: nothing left to do. What is on its way out needs
    // none; what is not will be seen again.
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

/** Somebody edited it, or the authority is a new one. Labels and annotations of others stay. */
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
