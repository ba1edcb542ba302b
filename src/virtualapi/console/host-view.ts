// LogicalClusters, MemberClusters and Placements of the host, for the admin of the installation to read. The process
// reads them with its own permissions, so nothing else of the host is shown, and nothing is written.
import { forbidden, methodNotServed, pathNotFound } from '#apimachinery/status/index.ts'
import type { Transport } from '#client/index.ts'
import type { UserInfo } from '#virtualapi/auth/authn/index.ts'
import { headerOf, type IncomingRequest, type StreamResponse } from '#virtualapi/request/exchange.ts'

/** The path below /console/ of the view. */
export const hostViewPath = 'k8s/host'
const prefix = `/console/${hostViewPath}`
const shownPaths =
  /^\/apis\/kcp\.dev\/v1alpha1(\/(logicalclusters|memberclusters|placements)(\/[a-z0-9][-.a-z0-9]{0,252})?)?$/
/** How long a client may read nothing before it is cut off, milliseconds. */
const maxStallMs = 60_000

/** Throws 403 unless the user is the admin of the installation, 404 for other paths and 405 for writes. */
export function requireHostView({ method, url }: IncomingRequest, { name, realm }: UserInfo): void {
  if (realm.kind !== 'installation')
    throw forbidden({ group: '', resource: '' }, '', `${JSON.stringify(name)} is no admin of the installation`)
  const [path = ''] = url.slice(prefix.length).split('?')
  if (!shownPaths.test(path) || path.includes('..')) throw pathNotFound()
  if (method !== 'GET' && method !== 'HEAD') throw methodNotServed()
}

/** Reads from the host. The answer ends when the signal aborts. */
export async function readHost(
  transport: Transport,
  { url, rawHeaders }: IncomingRequest,
  signal: AbortSignal,
): Promise<StreamResponse> {
  const accept = headerOf(rawHeaders, 'accept')
  const headers = { 'user-agent': 'kcp-console', ...(accept !== undefined && { accept }) }
  const path = url.slice(prefix.length)
  const { status, headers: answered, body } = await transport.request({ method: 'GET', path, headers, signal })
  const type = answered['content-type']
  return {
    kind: 'stream',
    status,
    headers: type === undefined ? {} : { 'content-type': type },
    chunks: body,
    maxStallMs,
  }
}
