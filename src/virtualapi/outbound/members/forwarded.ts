// The headers and query parameters of a tenant's request that are forwarded to a member. Headers are on an allow list,
// so that no credential is ever forwarded.

const always = new Set(['accept', 'content-type', 'user-agent'])
const forUpgrades = new Set([
  'connection',
  'upgrade',
  'x-stream-protocol-version',
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-extensions',
  'sec-websocket-protocol',
])
/** Browsers send their bearer token as a WebSocket subprotocol. */
const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'

/** The raw headers (name, value, ...) to forward. */
export function forwardedHeaders(rawHeaders: readonly string[], { upgrade }: { upgrade: boolean }): string[] {
  const out: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    const value = rawHeaders[i + 1] ?? ''
    const lower = name.toLowerCase()
    if (!always.has(lower) && !(upgrade && forUpgrades.has(lower))) continue
    if (lower === 'connection') out.push(name, 'Upgrade')
    else if (lower === 'sec-websocket-protocol') pushProtocols(out, name, value)
    else out.push(name, value)
  }
  return out
}

function pushProtocols(out: string[], name: string, value: string): void {
  const kept = value
    .split(',')
    .map((protocol) => protocol.trim())
    .filter((protocol) => protocol !== '' && !protocol.startsWith(tokenProtocol))
  if (kept.length > 0) out.push(name, kept.join(', '))
}

/** The query with its leading `?`, without insecureSkipTLSVerifyBackend: members always verify their kubelets. */
export function forwardedQuery(query: string): string {
  const parts = query
    .replace(/^\?/, '')
    .split('&')
    .filter((part) => part !== '' && decodeName(part) !== 'insecureSkipTLSVerifyBackend')
  return parts.length === 0 ? '' : `?${parts.join('&')}`
}

function decodeName(part: string): string {
  const name = part.split('=', 1)[0] ?? ''
  try {
    return decodeURIComponent(name)
  } catch {
    return name
  }
}
