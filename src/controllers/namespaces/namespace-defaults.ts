// What every namespace must have: the ServiceAccount `default` and the ConfigMap `kube-root-ca.crt`. Namespaces that a
// logical cluster is born with have both from the base layer: nothing is written for them unless somebody deleted it.
import { isJsonObject, type KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import { createInformer, keyFor, parseKey, type Change, type Informer, type KubeClient } from '../../client/index.ts'
import { createKeyQueue, runController } from '../../reconcile/index.ts'
import { configMaps, permanentNamespaces, serviceAccounts } from '../resources.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'
import { skeletonOf } from './skeleton.ts'

const rootCaName = 'kube-root-ca.crt'
/** After a deletion: a logical cluster or a namespace that is being emptied shall not be written to. */
const healAfterMs = 500

/** Follows namespaces, and the two objects in each. */
export async function startNamespaceDefaults(context: LoopContext): Loop {
  const { wildcard, namespaceInformer, log, signal } = context
  using queue = createKeyQueue()
  const shared = { client: wildcard, allClusters: true, log, signal }
  const accounts = createInformer<KubeObject>({
    ...shared,
    gvr: serviceAccounts,
    fieldSelector: 'metadata.name=default',
    transform: skeletonOf,
  })
  const rootCas = createInformer<KubeObject>({
    ...shared,
    gvr: configMaps,
    fieldSelector: `metadata.name=${rootCaName}`,
    transform: (object) => ({ ...skeletonOf(object), current: isCurrent(object, context.rootCa) }),
  })
  const namespaceOf = (key: string): string => {
    const { cluster = '', namespace = '' } = parseKey(key)
    return keyFor({ cluster, name: namespace })
  }
  const heal = ({ key, after }: Change<KubeObject>): void => {
    if (after === undefined) queue.addAfter(namespaceOf(key), healAfterMs)
    else if (after['current'] === false) queue.add(namespaceOf(key))
  }
  const stops = [accounts.onChange(heal), rootCas.onChange(heal)]
  try {
    // Only then does "not there" mean that it is not there.
    await Promise.all([accounts.synced(signal), rootCas.synced(signal), namespaceInformer.synced(signal)])
    stops.push(
      namespaceInformer.onChange(({ key, before, after }) => {
        if (before === undefined && after !== undefined) queue.add(key)
      }),
    )
    await runController({
      name: 'namespace-defaults',
      queue,
      log,
      signal,
      reconcile: (key, visit) => fillNamespace(key, { ...context, accounts, rootCas }, visit),
    })
  } catch (error) {
    if (!signal.aborted) throw error
  } finally {
    for (const stop of stops) stop()
    await Promise.all([accounts[Symbol.asyncDispose](), rootCas[Symbol.asyncDispose]()])
  }
}

interface Seen extends Pick<LoopContext, 'namespaceInformer' | 'cluster' | 'rootCa'> {
  readonly accounts: Informer<KubeObject>
  readonly rootCas: Informer<KubeObject>
}

async function fillNamespace(key: string, seen: Seen, signal: AbortSignal): Promise<void> {
  const { cluster = '', name: namespace } = parseKey(key)
  const known = seen.namespaceInformer.store.get(key)
  if (known === undefined ? !permanentNamespaces.includes(namespace) : known.metadata.deletionTimestamp !== undefined)
    return
  const client = seen.cluster(cluster)
  if (seen.accounts.store.get(keyFor({ cluster, namespace, name: 'default' })) === undefined) {
    await createOnce(
      client,
      serviceAccounts,
      { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default', namespace } },
      signal,
    )
  }
  const rootCa = seen.rootCas.store.get(keyFor({ cluster, namespace, name: rootCaName }))
  if (rootCa === undefined) await createOnce(client, configMaps, rootCaConfigMap(namespace, seen.rootCa), signal)
  else if (rootCa['current'] === false) await repairRootCa(client, namespace, seen.rootCa, signal)
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

function isCurrent({ data }: KubeObject, rootCa: string): boolean {
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
