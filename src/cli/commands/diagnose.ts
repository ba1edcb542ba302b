// `kcp diagnose`: names the faults of an installation and their remedies.
import { join } from 'node:path'
import { isStatusError } from '#apimachinery/status/index.ts'
import { createClient, httpTransport, loadKubeconfig, type KubeClient, type ListOptions } from '#client/index.ts'
import { logicalClusters, memberClusters, placements } from '#crds/index.ts'
import { leases, replicaSelector, type ReplicaLease } from '#store/ownership/index.ts'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress } from '#cli/process/progress.ts'
import { installationNamespace, openHost, tryPublishedAddress, type Host } from '#cli/roles/host-installation.ts'
import type { InstallationFlags } from './flags.ts'
import { installationOf } from './installation.ts'
import { documentText, printable } from './output.ts'
import {
  addressFinding,
  type ApiResponse,
  type ApiService,
  apiServiceFinding,
  type Finding,
  findingsText,
  hostFinding,
  kindsFinding,
  leaderFinding,
  type Lease,
  maxNamed,
  objectFinding,
  objectsFindings,
  replicasFindings,
  type Watched,
} from './diagnosis.ts'

interface Flags extends InstallationFlags {
  /** The former name of --host-kubeconfig. */
  readonly kubeconfig?: string
  readonly output: 'text' | 'json' | 'yaml'
}

const apiServices = { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' } as const
/** Time limit of each request, in milliseconds. */
const timeoutMs = 15_000
const timeouts = { connectTimeoutMs: 5000, responseTimeoutMs: 10_000 }
const pageSize = 500

/** Runs the command. */
export async function run({ kubeconfig, output, ...flags }: Flags): Promise<void> {
  const signal = processSignal()
  const { rootDir, hostKubeconfig, hostContext } = await chosenInstallation(
    kubeconfig === undefined ? flags : { ...flags, hostKubeconfig: kubeconfig },
  )
  using progress = startProgress()
  progress.tell('checking the installation')
  const findings =
    rootDir === undefined
      ? await diagnoseHost(hostKubeconfig, { context: hostContext, signal })
      : await diagnoseRoot(rootDir, signal)
  progress[Symbol.dispose]()
  process.stdout.write(
    output === 'text' ? `${printable(findingsText(findings))}\n` : documentText({ findings }, output),
  )
  const wrong = findings.filter(({ ok }) => !ok).length
  if (wrong > 0) throw new ExitError(`${wrong} of ${findings.length} checks found something wrong`)
}

/** In a pod of the host, no flag is needed. */
async function chosenInstallation(flags: InstallationFlags): Promise<InstallationFlags> {
  if (process.env['KUBECONFIG'] === undefined && process.env['KUBERNETES_SERVICE_HOST'] !== undefined) return flags
  return installationOf(flags)
}

/** The checks of the processes of an installation, without those of LogicalClusters and MemberClusters. */
export async function diagnoseProcesses(
  { rootDir, hostKubeconfig, hostContext }: InstallationFlags,
  signal: AbortSignal,
): Promise<Finding[]> {
  // The process of `kcp start` has just answered.
  if (rootDir !== undefined) return []
  await using host = await openHost(hostKubeconfig, hostContext)
  return await hostFindings(host, signal)
}

async function diagnoseHost(
  file: string | undefined,
  { context, signal }: { readonly context: string | undefined; readonly signal: AbortSignal },
): Promise<Finding[]> {
  await using host = await openHost(file, context)
  const findings = await hostFindings(host, signal)
  // Nothing else can be checked without the host.
  if (findings.length === 1) return findings
  return [...findings, ...(await diagnoseKinds(host.client, { starts: 'kcp operator' }, signal))]
}

async function hostFindings({ client }: Pick<Host, 'client'>, signal: AbortSignal): Promise<Finding[]> {
  const version = await ask(signal, async (limit) => (await client.raw('/version', { signal: limit })) as object)
  const reached = hostFinding(version)
  if ('error' in version) return [reached]
  const apiService = await ask(signal, (limit) =>
    client.tryGet<ApiService>(apiServices, { name: 'v1alpha1.virtual.kcp.dev' }, { signal: limit }),
  )
  const ca = 'value' in apiService ? apiService.value?.spec?.caBundle : undefined
  const url = await ask(signal, async (limit) => (await tryPublishedAddress(client, limit))?.url)
  const direct = 'value' in url ? url.value : undefined
  const ready =
    ca === undefined || direct === undefined ? undefined : await askReady(direct, Buffer.from(ca, 'base64'), signal)
  const ref = { namespace: installationNamespace, name: 'kcp-operator' }
  const lease = await ask(signal, (limit) => client.tryGet<Lease>(leases, ref, { signal: limit }))
  const replicas = await ask(signal, (limit) =>
    client.list<ReplicaLease>(leases, {
      namespace: installationNamespace,
      labelSelector: replicaSelector,
      signal: limit,
    }),
  )
  return [
    reached,
    apiServiceFinding(apiService),
    addressFinding(url, ready),
    leaderFinding(lease, Date.now()),
    ...replicasFindings(replicas, Date.now()),
  ]
}

async function diagnoseRoot(rootDir: string, signal: AbortSignal): Promise<Finding[]> {
  const kubeconfig = await loadKubeconfig(
    { file: join(rootDir, 'admin.kubeconfig') },
    { trusted: true, context: 'root' },
  )
  const { ca } = await kubeconfig.endpoint()
  const direct = new URL(kubeconfig.server).origin
  const ready = await askReady(direct, ca, signal)
  const reached = addressFinding({ value: direct }, ready)
  if ('error' in ready) return [{ ...reached, todo: `start it: kcp start --root-dir ${rootDir}` }]
  await using transport = httpTransport(kubeconfig, timeouts)
  return [reached, ...(await diagnoseKinds(createClient(transport), { starts: 'kcp start' }, signal))]
}

/** Our CustomResourceDefinitions, then the objects of those that are served. */
async function diagnoseKinds(
  client: KubeClient,
  { starts }: { readonly starts: string },
  signal: AbortSignal,
): Promise<Finding[]> {
  const missing = await ask(signal, async (limit) => {
    const kinds = [logicalClusters, memberClusters, placements]
    const served = await Promise.all(kinds.map((gvr) => isServed(client, gvr, limit)))
    return kinds.filter((_, index) => served[index] === false).map(({ resource, group }) => `${resource}.${group}`)
  })
  const kinds = kindsFinding(missing, { starts })
  if (!kinds.ok) return [kinds]
  const ofClusters = { kind: 'LogicalCluster', conditions: ['Ready', 'KubeconfigsWritten'] }
  const ofMembers = { kind: 'MemberCluster', conditions: ['Ready', 'CredentialsValid'] }
  return [
    kinds,
    ...objectsFindings('LogicalClusters', await askObjects(client, logicalClusters, ofClusters, signal)),
    ...objectsFindings('MemberClusters', await askObjects(client, memberClusters, ofMembers, signal)),
  ]
}

async function isServed(
  client: KubeClient,
  gvr: Parameters<KubeClient['list']>[0],
  signal: AbortSignal,
): Promise<boolean> {
  try {
    await client.list(gvr, { limit: 1, metadataOnly: true, signal })
    return true
  } catch (error) {
    if (isStatusError(error, 'NotFound')) return false
    throw error
  }
}

/** Reads all objects page by page and keeps the findings of the first objects with problems. */
async function askObjects(
  client: KubeClient,
  gvr: Parameters<KubeClient['list']>[0],
  { kind, conditions }: { readonly kind: string; readonly conditions: readonly string[] },
  signal: AbortSignal,
): Promise<Parameters<typeof objectsFindings>[1]> {
  const seen = { total: 0, bad: 0, findings: [] as Finding[] }
  const nowMs = Date.now()
  let next: string | undefined
  do {
    const page = await ask(signal, (limit) => {
      const options: ListOptions = { limit: pageSize, signal: limit, ...(next !== undefined && { continue: next }) }
      return client.list<Watched>(gvr, options)
    })
    if ('error' in page) return page
    for (const object of page.value.items) {
      seen.total++
      const finding = objectFinding(object, { kind, conditions, nowMs })
      if (finding === undefined) continue
      seen.bad++
      if (seen.findings.length < maxNamed) seen.findings.push(finding)
    }
    next = page.value.metadata.continue === '' ? undefined : page.value.metadata.continue
  } while (next !== undefined)
  return { value: seen }
}

/** The status of /readyz at this address, whose certificate must be signed by `ca`. */
async function askReady(
  server: string,
  ca: string | Buffer | undefined,
  signal: AbortSignal,
): Promise<ApiResponse<number>> {
  await using transport = httpTransport({ server, ...(ca !== undefined && { ca }) }, timeouts)
  return await ask(signal, async (limit) => {
    const { status, body } = await transport.request({ method: 'GET', path: '/readyz', signal: limit })
    for await (const _ of body);
    return status
  })
}

async function ask<T>(signal: AbortSignal, question: (limit: AbortSignal) => Promise<T>): Promise<ApiResponse<T>> {
  try {
    return { value: await question(AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)])) }
  } catch (error) {
    signal.throwIfAborted()
    return { error: messageOf(error) }
  }
}
