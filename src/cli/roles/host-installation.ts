// The objects that an installation keeps in its host: the namespace, the keys shared by its processes, and the address
// of its server.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { sleep } from '#async/index.ts'
import {
  createClient,
  httpTransport,
  inClusterConfig,
  loadKubeconfig,
  type Kubeconfig,
  type KubeClient,
  type Transport,
} from '#client/index.ts'
import { installationKeysName } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { createPki, createPkiMaterial, pkiFromSecret, pkiToSecret, type Pki } from '#virtualapi/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { hostServingCertificates } from './host-serving-certificates.ts'
import { newSealKey, sealKeysOf, sealMember, type SealKeys } from './seal-keys.ts'

export const installationNamespace = 'kcp-system'
const keysName = installationKeysName
const addressName = 'kcp-apiserver'
const askAgainMs = 1000

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const configMaps = { group: '', version: 'v1', resource: 'configmaps' } as const

export interface Host extends AsyncDisposable {
  readonly kubeconfig: Kubeconfig
  readonly transport: Transport
  readonly client: KubeClient
}

/** Opens the host given by a file, by KUBECONFIG, or by the pod we run in. */
export async function openHost(file: string | undefined, context?: string): Promise<Host> {
  const path = file ?? process.env['KUBECONFIG']
  if (path === undefined && process.env['KUBERNETES_SERVICE_HOST'] === undefined)
    throw new ExitError('no host cluster: set KUBECONFIG, give --kubeconfig, or run in a pod of the host')
  const kubeconfig =
    path === undefined
      ? await inClusterConfig()
      : await loadKubeconfig({ file: path }, { trusted: true, ...(context !== undefined && { context }) })
  const transport = httpTransport(kubeconfig)
  return {
    kubeconfig,
    transport,
    client: createClient(transport),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

interface Secret extends KubeObject {
  data?: Record<string, string>
}
interface ConfigMap extends KubeObject {
  data?: Record<string, string>
}

export interface InstallationKeys extends SealKeys {
  readonly pki: Pki
}

/**
 * The keys of this installation, created by the first process that needs them. With `keepsServing` false, serving
 * certificates live as long as the process: not all processes may write the Secret with the kept certificates. Default
 * true.
 */
export async function installationKeys(
  client: KubeClient,
  signal: AbortSignal,
  { keepsServing = true }: { readonly keepsServing?: boolean } = {},
): Promise<InstallationKeys> {
  await ensureNamespace(client, signal)
  const data = await keysData(client, signal)
  const store = hostServingCertificates(client, { namespace: installationNamespace, signal })
  const pki = createPki(pkiFromSecret(data), keepsServing ? { store } : {})
  return { pki, ...sealKeysOf(data, `${installationNamespace}/${keysName}`) }
}

/**
 * The content of the Secret. The chart and config/default contain the Secret without content, because no process of
 * ours may create Secrets in the host: that right would allow it to get a token of any ServiceAccount of the namespace.
 */
async function keysData(client: KubeClient, signal: AbortSignal): Promise<Record<string, string>> {
  const ref = { namespace: installationNamespace, name: keysName }
  for (;;) {
    const kept = await client.tryGet<Secret>(secrets, ref, { signal })
    if (kept?.data !== undefined && Object.keys(kept.data).length > 0) return kept.data
    try {
      return await fillKeys(client, kept, signal)
    } catch (error) {
      const lostRace = isStatusError(error, 'AlreadyExists') || isStatusError(error, 'Conflict')
      if (!lostRace && !isStatusError(error, 'Forbidden')) throw error
      if (!lostRace && kept === undefined)
        throw new ExitError(
          `there is no Secret "${installationNamespace}/${keysName}", and this process may not create it: install the chart, or apply config/default`,
          { cause: error },
        )
      // The operator may not fill the Secret, and waits until kcp apiserver has filled it.
      if (!lostRace) await sleep(askAgainMs, signal)
    }
  }
}

async function fillKeys(
  client: KubeClient,
  empty: Secret | undefined,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const data = { ...pkiToSecret(await createPkiMaterial()), [sealMember]: newSealKey() }
  if (empty !== undefined) await client.update<Secret>(secrets, { ...empty, data }, { signal })
  else {
    const metadata = { name: keysName, namespace: installationNamespace }
    await client.create<Secret>(secrets, { apiVersion: 'v1', kind: 'Secret', metadata, data }, { signal })
  }
  return data
}

async function ensureNamespace(client: KubeClient, signal: AbortSignal): Promise<void> {
  if ((await client.tryGet(namespaces, { name: installationNamespace }, { signal })) !== undefined) return
  const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: installationNamespace } }
  await client.create(namespaces, namespace, { signal }).catch(tolerate('AlreadyExists'))
}

/** Where the server is reached. */
export interface Addresses {
  /** The URL of its direct listener. */
  readonly url: string
  /** The origin of the console, if it is another one. */
  readonly consoleUrl?: string
  /** The server with the logical clusters. Absent: they are Records in the host. */
  readonly store?: 'etcd' | 'postgres'
}

/** Publishes the addresses for the other processes, `kcp kubeconfig` and `kcp console`. */
export async function publishAddress(
  client: KubeClient,
  { url, consoleUrl, store }: Addresses,
  signal: AbortSignal,
): Promise<void> {
  const data = { url, ...(consoleUrl !== undefined && { consoleUrl }), ...(store !== undefined && { store }) }
  const metadata = { name: addressName, namespace: installationNamespace }
  const object: ConfigMap = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data }
  await client.patch(configMaps, metadata, 'apply', object, { fieldManager: 'kcp-apiserver', force: true, signal })
}

/**
 * The URL of the server's direct listener. Waits until the server has published one that differs from `otherThan`;
 * retries while the host is unreachable or restarting.
 */
export async function publishedAddress(
  client: KubeClient,
  { otherThan, log, signal }: { otherThan?: string; log: Logger; signal: AbortSignal },
): Promise<string> {
  for (;;) {
    try {
      const watch = client.watch<ConfigMap>(configMaps, {
        namespace: installationNamespace,
        fieldSelector: `metadata.name=${addressName}`,
        signal,
      })
      for await (const event of watch) {
        const url = event.type === 'ADDED' || event.type === 'MODIFIED' ? event.object.data?.['url'] : undefined
        if (url !== undefined && url !== otherThan) return url
      }
    } catch (error) {
      signal.throwIfAborted()
      log.warn('the address of kcp apiserver cannot be read in the host', { error })
    }
    await sleep(askAgainMs, signal)
  }
}

/** The published addresses, or undefined if there are none yet. */
export async function tryPublishedAddress(client: KubeClient, signal: AbortSignal): Promise<Addresses | undefined> {
  const ref = { namespace: installationNamespace, name: addressName }
  const { url, consoleUrl } = (await client.tryGet<ConfigMap>(configMaps, ref, { signal }))?.data ?? {}
  return url === undefined ? undefined : { url, ...(consoleUrl !== undefined && { consoleUrl }) }
}

/** The server with the logical clusters, as the API servers have published; undefined: they are Records in the host. */
export async function publishedStore(client: KubeClient, signal: AbortSignal): Promise<string | undefined> {
  const ref = { name: addressName, namespace: installationNamespace }
  const found = await client.tryGet<ConfigMap>(configMaps, ref, { signal })
  return found?.data?.['store']
}
