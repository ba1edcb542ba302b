// Finds an installation for the commands that act on one, by the directory of `kcp start` or by its host.
import { existsSync } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { rootClusterName } from '#apimachinery/meta/index.ts'
import { childSignal } from '#async/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { installationKeys, openHost, tryPublishedAddress } from '#cli/roles/host-installation.ts'
import {
  createClient,
  httpTransport,
  type KubeClient,
  loadKubeconfig,
  sharedInformers,
  type Transport,
} from '#client/index.ts'
import { PlacementInputs } from '#operator/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { openPki, type Pki } from '#virtualapi/index.ts'
import type { InstallationFlags } from './flags.ts'
import { currentKcpContext } from './kubeconfig-file.ts'

export interface Installation extends AsyncDisposable {
  /** The API with the LogicalClusters and MemberClusters. */
  readonly clusters: KubeClient
  /** `https://host:port` of the direct listener. */
  readonly directUrl: string
  /** The origin of the console, if it is known to be another one. */
  readonly consoleUrl?: string
  readonly pki: Pki
  /** The flags that find this installation from anywhere. */
  readonly found: InstallationFlags
}

/**
 * Opens the installation that the flags name, or that `kcp use` has noted in the current context, or that KUBECONFIG
 * leads to. Rejects with ExitError saying which flag is missing or what to start.
 */
export async function openInstallation(flags: InstallationFlags, signal: AbortSignal): Promise<Installation> {
  const { rootDir, ...host } = await installationOf(flags)
  return rootDir === undefined ? openHosted(host, signal) : openEmbedded(rootDir)
}

/** The flags, completed by the current context and KUBECONFIG. */
export async function installationOf(flags: InstallationFlags): Promise<InstallationFlags> {
  if (flags.rootDir !== undefined || flags.hostKubeconfig !== undefined) return flags
  const current = await currentKcpContext()
  if (current !== undefined) return current.installation
  const file = process.env['KUBECONFIG']
  if (file === undefined)
    throw new UsageError('which installation? give --root-dir DIR (of kcp start) or --host-kubeconfig FILE')
  return { ...flags, ...(await installationOfFile(file)) }
}

/** The installation that a kubeconfig leads to: the admin's of `kcp start`, which lies beside its keys, or a host's. */
export async function installationOfFile(file: string): Promise<InstallationFlags> {
  const mayBeOfStart = basename(file) === 'admin.kubeconfig' && existsSync(join(dirname(file), 'pki'))
  const text = mayBeOfStart ? await readFile(file, 'utf8').catch(() => '') : ''
  return text.includes(`/clusters/${rootClusterName}`) ? { rootDir: dirname(file) } : { hostKubeconfig: file }
}

async function openEmbedded(rootDir: string): Promise<Installation> {
  const file = join(rootDir, 'admin.kubeconfig')
  await stat(file).catch(() => {
    throw new ExitError(`"${file}" is missing: start 'kcp start --root-dir ${rootDir}' first`)
  })
  await readFile(file).catch((error: unknown) => {
    throw new ExitError(`cannot read "${file}": ${String(error)}`)
  })
  // Not the current context: `kcp use` may have written to this file, and its context needs this installation.
  const kubeconfig = await loadKubeconfig({ file }, { trusted: true, context: 'root' })
  const transport = httpTransport(kubeconfig)
  return {
    clusters: createClient(transport),
    directUrl: new URL(kubeconfig.server).origin,
    pki: await openPki(rootDir),
    found: { rootDir: resolve(rootDir) },
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

async function openHosted(
  { hostKubeconfig: file = '', hostContext }: InstallationFlags,
  signal: AbortSignal,
): Promise<Installation> {
  const host = await openHost(file, hostContext)
  const addresses = await tryPublishedAddress(host.client, signal)
  if (addresses === undefined) {
    await host[Symbol.asyncDispose]()
    throw new ExitError('kcp apiserver has not published its address in this host yet: start it first')
  }
  const { pki } = await installationKeys(host.client, signal)
  const { url: directUrl, consoleUrl } = addresses
  const found = { hostKubeconfig: resolve(file), hostContext: host.kubeconfig.context }
  return {
    clusters: host.client,
    directUrl,
    ...(consoleUrl !== undefined && { consoleUrl }),
    pki,
    found,
    [Symbol.asyncDispose]: () => host[Symbol.asyncDispose](),
  }
}

interface OpenPlacement extends AsyncDisposable {
  readonly inputs: PlacementInputs
}

const identities = {
  admin: { commonName: 'kcp-admin', organizations: ['system:masters'] },
  operator: { commonName: 'kcp:operator', organizations: ['kcp:system'] },
} as const

/** A connection to the direct listener as an identity of the installation, which reads all logical clusters. */
export async function openDirect(
  { directUrl, pki }: Pick<Installation, 'directUrl' | 'pki'>,
  identity: keyof typeof identities = 'admin',
): Promise<Transport> {
  const request = { ...identities[identity], realm: 'installation', days: 1 } as const
  const { certificate: cert, key } = await pki.issueClientCertificate(request)
  const endpoint = { server: directUrl, ca: pki.servingCa, cert, key }
  return httpTransport({ endpoint: () => Promise.resolve(endpoint) })
}

/**
 * Reads the inputs of placement over all logical clusters. Rejects with StatusError if the API server does not respond.
 */
export async function openPlacement(
  installation: Installation,
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<OpenPlacement> {
  await using stack = new AsyncDisposableStack()
  const transport = stack.use(await openDirect(installation, 'operator'))
  const life = stack.use(childSignal(signal))
  stack.defer(() => life.abort(new DOMException('the command has ended', 'AbortError')))
  const informers = sharedInformers(installation.clusters, { log, signal: life.signal })
  const virtual = createClient(transport, { basePath: '/clusters/*' })
  const tenantInformers = sharedInformers(virtual, { allClusters: true, log, signal: life.signal })
  const inputs = stack.use(new PlacementInputs({ informers, tenantInformers }))
  await inputs.synced(signal)
  const kept = stack.move()
  return { inputs, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}
