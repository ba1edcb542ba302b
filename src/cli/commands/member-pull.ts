// `kcp member join NAME --pull`: prints the manifest for a cluster that kcp cannot reach, or applies it there.
import { isIP } from 'node:net'
import { stringify } from 'yaml'
import { logicalClusters, type LogicalCluster } from '#crds/index.ts'
import { joinByPull, type PullJoinOptions } from '#syncer/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { UsageError } from '#cli/process/exit-error.ts'
import type { Installation } from './installation.ts'

export interface PullFlags {
  readonly approve?: boolean
  /** Milliseconds. */
  readonly tokenTtl: number
  readonly server?: string
  readonly httpProxy?: string
  readonly image?: string
}

type Joining = Omit<PullJoinOptions, 'server' | 'ca' | 'image' | 'httpProxy' | 'tokenMs' | 'approves'>

/** Registers the member. The manifest goes to standard output, and what to do next to standard error. */
export async function pull(options: Joining, flags: PullFlags, installation: Installation): Promise<void> {
  const { approve: approves = false, tokenTtl: tokenMs, httpProxy } = flags
  if (httpProxy !== undefined && !isUrl(httpProxy, ['http:', 'https:']))
    throw new UsageError('--http-proxy is no http URL')
  const server = await serverOf(flags, installation, options.signal)
  const { manifest, expires, isSwitched } = await joinByPull({
    ...options,
    server,
    ca: installation.pki.servingCa,
    image: flags.image ?? `kcp.dev/kcp:${programVersion}`,
    ...(httpProxy !== undefined && { httpProxy }),
    tokenMs,
    approves,
  })
  const { name } = options
  const isApplied = options.memberKubeconfig !== undefined
  if (!isApplied) process.stdout.write(manifest.map((object) => `---\n${stringify(object)}`).join(''))
  const apply = isApplied
    ? ''
    : `apply this manifest in the cluster until ${expires}; it holds a token, so keep it secret. `
  const approval = approves
    ? 'Its agent is accepted without more'
    : `Then accept its agent with:  kcp member approve ${name}`
  const before = isSwitched ? ' kcp goes on to reach the member as before until the agent has connected.' : ''
  console.error(`member cluster "${name}" waits for its agent: ${apply}${approval}.${before}`)
}

/** The URL at which the member reaches the server. */
async function serverOf({ server }: PullFlags, installation: Installation, signal: AbortSignal): Promise<string> {
  if (server !== undefined) {
    if (!isUrl(server, ['https:'])) throw new UsageError('--server is no https URL')
    return new URL(server).origin
  }
  const found = await advertised(installation, signal)
  const { hostname, origin } = new URL(found)
  if (
    hostname === 'localhost' ||
    hostname.startsWith('127.') ||
    hostname === '[::1]' ||
    (isIP(hostname) === 0 && !hostname.includes('.'))
  )
    console.error(`warning: the cluster may not reach "${origin}": if so, run this again with --server URL`)
  return origin
}

/** The address for members: `kcp start` tells it in its LogicalClusters only. */
async function advertised({ clusters, directUrl }: Installation, signal: AbortSignal): Promise<string> {
  const { items } = await clusters.list<LogicalCluster>(logicalClusters, { limit: 1, signal })
  return items[0]?.status?.directURL ?? directUrl
}

function isUrl(text: string, protocols: readonly string[]): boolean {
  return URL.canParse(text) && protocols.includes(new URL(text).protocol)
}
