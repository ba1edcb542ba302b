// Finds an installation for the commands that act on one, by the directory of `kcp start` or by its host.
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { childSignal } from '#async/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { installationKeys, openHost, tryPublishedAddress } from '#cli/roles/host-installation.ts'
import { createClient, httpTransport, type KubeClient, loadKubeconfig, sharedInformers } from '#client/index.ts'
import { PlacementInputs } from '#operator/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { openPki, type Pki } from '#virtualapi/index.ts'
import type { InstallationFlags } from './flags.ts'

export interface Installation extends AsyncDisposable {
  /** The API with the LogicalClusters and MemberClusters. */
  readonly clusters: KubeClient
  /** `https://host:port` of the direct listener. */
  readonly directUrl: string
  readonly pki: Pki
}

/** Opens the installation that the flags name. Rejects with ExitError saying which flag is missing or what to start. */
export async function openInstallation(flags: InstallationFlags, signal: AbortSignal): Promise<Installation> {
  if (flags.rootDir !== undefined) return openEmbedded(flags.rootDir)
  if (flags.hostKubeconfig === undefined && process.env['KUBECONFIG'] === undefined)
    throw new ExitError('which installation? give --root-dir DIR (of kcp start) or --host-kubeconfig FILE')
  return openHosted(flags.hostKubeconfig, signal)
}

async function openEmbedded(rootDir: string): Promise<Installation> {
  const file = join(rootDir, 'admin.kubeconfig')
  await stat(file).catch(() => {
    throw new ExitError(`"${file}" is missing: start 'kcp start --root-dir ${rootDir}' first`)
  })
  await readFile(file).catch((error: unknown) => {
    throw new ExitError(`cannot read "${file}": ${String(error)}`)
  })
  const kubeconfig = await loadKubeconfig({ file }, { trusted: true })
  const transport = httpTransport(kubeconfig)
  return {
    clusters: createClient(transport),
    directUrl: new URL(kubeconfig.server).origin,
    pki: await openPki(rootDir),
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

async function openHosted(file: string | undefined, signal: AbortSignal): Promise<Installation> {
  const host = await openHost(file)
  const directUrl = await tryPublishedAddress(host.client, signal)
  if (directUrl === undefined) {
    await host[Symbol.asyncDispose]()
    throw new ExitError('kcp apiserver has not published its address in this host yet: start it first')
  }
  const { pki } = await installationKeys(host.client, signal)
  return { clusters: host.client, directUrl, pki, [Symbol.asyncDispose]: () => host[Symbol.asyncDispose]() }
}

interface OpenPlacement extends AsyncDisposable {
  readonly inputs: PlacementInputs
}

/**
 * Reads the inputs of placement over all logical clusters. Rejects with StatusError if the API server does not respond.
 */
export async function openPlacement(
  { clusters, directUrl, pki }: Installation,
  { log, signal }: { readonly log: Logger; readonly signal: AbortSignal },
): Promise<OpenPlacement> {
  await using stack = new AsyncDisposableStack()
  const { certificate: cert, key } = await pki.issueClientCertificate({
    commonName: 'kcp:operator',
    organizations: ['kcp:system'],
    realm: 'installation',
    days: 1,
  })
  const endpoint = { server: directUrl, ca: pki.servingCa, cert, key }
  const transport = stack.use(httpTransport({ endpoint: () => Promise.resolve(endpoint) }))
  const life = stack.use(childSignal(signal))
  stack.defer(() => life.abort(new DOMException('the command has ended', 'AbortError')))
  const informers = sharedInformers(clusters, { log, signal: life.signal })
  const virtual = createClient(transport, { basePath: '/clusters/*' })
  const tenantInformers = sharedInformers(virtual, { allClusters: true, log, signal: life.signal })
  const inputs = stack.use(new PlacementInputs({ informers, tenantInformers }))
  await inputs.synced(signal)
  const kept = stack.move()
  return { inputs, [Symbol.asyncDispose]: () => kept.disposeAsync() }
}
