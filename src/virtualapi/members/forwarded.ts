// What of a tenant's request goes on to a member: by name, so that no proof of identity, of whatever kind, ever does.

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

/** Raw header pairs for the member. */
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

/** The query with its leading `?`. A tenant may not have the member's kubelet unverified. */
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
