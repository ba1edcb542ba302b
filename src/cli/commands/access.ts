// `kcp access`: an exec plugin for clients of ClusterProfiles. It prints an ExecCredential with a token for the member
// or the logical cluster of the profile. Its own identity is that of KUBECONFIG, or of the pod that it runs in.
import { processSignal } from '#cli/process/process-signal.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { openHost } from '#cli/roles/host-installation.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { accessGroup, accessSubresource, accessVersion } from '#crds/index.ts'

interface Flags {
  readonly kubeconfig?: string
  readonly context?: string
}

interface ExecInfo {
  readonly apiVersion?: string
  readonly kind?: string
  readonly spec?: { readonly cluster?: { readonly server?: string; readonly 'certificate-authority-data'?: string } }
}

interface AccessToken extends KubeObject {
  readonly status?: {
    readonly token: string
    readonly expirationTimestamp: string
    readonly path: string
    readonly certificateAuthorityData: string
  }
}

const credentialVersions = ['client.authentication.k8s.io/v1', 'client.authentication.k8s.io/v1beta1']
const timeoutMs = 30_000

/** Runs the command. */
export async function run({ kubeconfig, context }: Flags): Promise<void> {
  const { apiVersion, server, ca } = execInfo(process.env['KUBERNETES_EXEC_INFO'])
  const target = targetOf(server)
  const signal = AbortSignal.any([processSignal(), AbortSignal.timeout(timeoutMs)])
  await using api = await openHost(kubeconfig, context)
  const gvr = { group: accessGroup, version: accessVersion, resource: target.resource }
  const asked = {
    apiVersion: `${accessGroup}/${accessVersion}`,
    kind: 'AccessToken',
    metadata: { name: target.name },
  }
  const { status } = await api.client
    .create<AccessToken>(gvr, asked, { subresource: accessSubresource, signal })
    .catch((error: unknown) => {
      throw isStatusError(error)
        ? new ExitError(`no access to ${target.resource} "${target.name}": ${error.message}`, { cause: error })
        : error
    })
  if (status === undefined) throw new ExitError('the server answered without a token')
  // A profile that somebody else wrote must not send the token elsewhere.
  if (status.path !== target.path || !isSameText(status.certificateAuthorityData, ca))
    throw new ExitError(`"${server}" is not the address of ${target.resource} "${target.name}" of this installation`)
  const { token, expirationTimestamp } = status
  console.log(JSON.stringify({ apiVersion, kind: 'ExecCredential', status: { token, expirationTimestamp } }))
}

/** What the client says of the cluster (client.authentication.k8s.io, provideClusterInfo). */
function execInfo(text: string | undefined): { apiVersion: string; server: string; ca: string } {
  if (text === undefined || text === '')
    throw new UsageError('KUBERNETES_EXEC_INFO is not set: clients run this command, with provideClusterInfo: true')
  const { apiVersion = '', kind, spec } = parsed(text)
  const { server, 'certificate-authority-data': ca = '' } = spec?.cluster ?? {}
  if (kind !== 'ExecCredential' || !credentialVersions.includes(apiVersion))
    throw new UsageError(`KUBERNETES_EXEC_INFO is no ExecCredential of ${credentialVersions.join(' or ')}`)
  if (server === undefined || ca === '')
    throw new UsageError(
      'KUBERNETES_EXEC_INFO names no cluster with its certificate authority: set provideClusterInfo: true',
    )
  return { apiVersion, server, ca }
}

function parsed(text: string): ExecInfo {
  try {
    const value: unknown = parseJsonText(text)
    if (typeof value === 'object' && value !== null) return value
  } catch {
    // The error below says what is wrong.
  }
  throw new UsageError('KUBERNETES_EXEC_INFO is not a JSON object')
}

interface Target {
  readonly resource: 'memberclusters' | 'logicalclusters'
  readonly name: string
  readonly path: string
}

const paths = { memberclusters: '/services/members/', logicalclusters: '/clusters/' } as const

/** The target by the path of the server. */
function targetOf(server: string): Target {
  const pathname = URL.canParse(server) && server.startsWith('https://') ? new URL(server).pathname : ''
  const path = pathname.replace(/\/$/, '')
  for (const resource of ['memberclusters', 'logicalclusters'] as const) {
    const prefix = paths[resource]
    const name = path.slice(prefix.length)
    if (path.startsWith(prefix) && /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/.test(name)) return { resource, name, path }
  }
  throw new UsageError(`"${server}" is not the address of a member or a logical cluster of kcp`)
}

/** Compares base64 texts, which may have line breaks. */
function isSameText(one: string, other: string): boolean {
  const bare = (text: string): string => text.replace(/\s/g, '')
  return bare(one) === bare(other)
}
