// Bearer tokens in the subprotocols of a WebSocket handshake: browsers cannot send the header Authorization.
import { isWebSocketRequest } from './web-socket.ts'
import { headerOf } from '#virtualapi/request/exchange.ts'

const tokenProtocol = 'base64url.bearer.authorization.k8s.io.'
/** A token that no client has, so authentication refuses it. */
const notValid = '-'
const utf8 = new TextDecoder('utf-8', { fatal: true })

/**
 * The headers with the token of the subprotocol moved to Authorization; the same headers if there is no such token, or
 * if the request has a bearer token already. As in kube-apiserver, a token is invalid if it is malformed, sent twice,
 * or the only subprotocol: the server must have another subprotocol to select.
 */
export function withProtocolToken(rawHeaders: readonly string[]): readonly string[] {
  const offered = rawHeaders.filter((_, i) => isProtocolValue(rawHeaders, i)).flatMap((value) => value.split(','))
  const protocols = offered.map((protocol) => protocol.trim())
  const tokens = protocols.filter((protocol) => protocol.startsWith(tokenProtocol))
  const header = (name: string): string | undefined => headerOf(rawHeaders, name)
  if (tokens.length === 0 || /^bearer /i.test(header('authorization') ?? '') || !isWebSocketRequest(header))
    return rawHeaders
  const others = protocols.filter((protocol) => protocol !== '' && !protocol.startsWith(tokenProtocol))
  const token = tokens.length === 1 && others.length > 0 ? tokenOf(tokens[0] ?? '') : notValid
  if (token === '') return rawHeaders
  const kept = rawHeaders.filter((_, i) => !isProtocolValue(rawHeaders, i) && !isProtocolValue(rawHeaders, i + 1))
  const selectable = others.length === 0 ? [] : ['Sec-WebSocket-Protocol', others.join(', ')]
  return [...kept, ...selectable, 'Authorization', `Bearer ${token}`]
}

/** True if the text at `index` is a value of the header Sec-WebSocket-Protocol. */
function isProtocolValue(rawHeaders: readonly string[], index: number): boolean {
  return index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'sec-websocket-protocol'
}

function tokenOf(protocol: string): string {
  const encoded = protocol.slice(tokenProtocol.length)
  if (!/^[A-Za-z0-9_-]*$/.test(encoded)) return notValid
  try {
    const token = utf8.decode(Buffer.from(encoded, 'base64url'))
    return token === '' || /^[\x21-\x7e]+$/.test(token) ? token : notValid
  } catch {
    return notValid
  }
}
