// URLs as Go's net/url reads and prints them.
import { isIP } from 'node:net'
import { goQuote } from './go-text.ts'

export interface GoUrl {
  readonly scheme: string
  readonly opaque: string
  readonly user: string | undefined
  readonly host: string
  /** The unescaped path. */
  readonly path: string
  /** The path as written; empty if escaping `path` gives the same text. */
  readonly rawPath: string
  readonly query: string | undefined
  readonly fragment: string | undefined
}

class UrlError extends Error {}

const failure = (url: string, why: string): UrlError => new UrlError(`parse ${goQuote(url)}: ${why}`)

/** Reads an absolute URL or path, as a request line has it. Throws an Error in Go's words. */
export function parseRequestUri(text: string): GoUrl {
  return parse(text, text, true)
}

/** Reads any URL reference. Throws an Error in Go's words. */
export function parseUrl(text: string): GoUrl {
  const hash = text.indexOf('#')
  const before = hash < 0 ? text : text.slice(0, hash)
  const url = parse(before, text, false)
  return hash < 0 ? url : { ...url, fragment: unescape(text.slice(hash + 1), 'fragment', text) }
}

function parse(text: string, shown: string, viaRequest: boolean): GoUrl {
  if (/[\x00-\x1f\x7f]/.test(text)) throw failure(shown, 'net/url: invalid control character in URL')
  if (text === '' && viaRequest) throw failure(shown, 'empty url')
  const none = {
    scheme: '',
    opaque: '',
    user: undefined,
    host: '',
    path: '',
    rawPath: '',
    query: undefined,
    fragment: undefined,
  }
  if (text === '*') return { ...none, path: '*' }
  const { scheme, rest: afterScheme } = splitScheme(text, shown)
  const mark = afterScheme.indexOf('?')
  const query = mark < 0 ? undefined : afterScheme.slice(mark + 1)
  let rest = mark < 0 ? afterScheme : afterScheme.slice(0, mark)
  if (!rest.startsWith('/')) {
    if (scheme !== '') return { ...none, scheme, opaque: rest, query }
    if (viaRequest) throw failure(shown, 'invalid URI for request')
    if ((rest.split('/')[0] ?? '').includes(':')) throw failure(shown, 'first path segment in URL cannot contain colon')
  }
  let authority = { user: undefined as string | undefined, host: '' }
  if ((scheme !== '' || (!viaRequest && !rest.startsWith('///'))) && rest.startsWith('//')) {
    const slash = rest.indexOf('/', 2)
    authority = parseAuthority(slash < 0 ? rest.slice(2) : rest.slice(2, slash), shown)
    rest = slash < 0 ? '' : rest.slice(slash)
  }
  const path = unescape(rest, 'path', shown)
  return { ...none, scheme, ...authority, path, rawPath: escapePath(path) === rest ? '' : rest, query }
}

function splitScheme(text: string, shown: string): { scheme: string; rest: string } {
  const match = /^([a-zA-Z][a-zA-Z0-9+.-]*):/.exec(text)
  if (match !== null) return { scheme: (match[1] ?? '').toLowerCase(), rest: text.slice(match[0].length) }
  if (text.startsWith(':')) throw failure(shown, 'missing protocol scheme')
  return { scheme: '', rest: text }
}

function parseAuthority(text: string, shown: string): { user: string | undefined; host: string } {
  const at = text.lastIndexOf('@')
  const host = parseHost(text.slice(at + 1), shown)
  if (at < 0) return { user: undefined, host }
  const user = text.slice(0, at)
  if (!/^[A-Za-z0-9\-._:~!$&'()*+,;=%@]*$/.test(user)) throw failure(shown, 'net/url: invalid userinfo')
  return { user: unescape(user, 'user', shown), host }
}

function parseHost(host: string, shown: string): string {
  const open = host.lastIndexOf('[')
  if (open > 0) throw failure(shown, 'invalid IP-literal')
  if (open === 0) return parseLiteral(host, shown)
  const colon = host.lastIndexOf(':')
  if (colon >= 0 && !/^:\d*$/.test(host.slice(colon)))
    throw failure(shown, `invalid port ${goQuote(host.slice(colon))} after host`)
  return unescape(host, 'host', shown)
}

/** Only an IPv6 address may be in brackets (RFC 3986), with a zone or without. */
function parseLiteral(host: string, shown: string): string {
  const end = host.lastIndexOf(']')
  if (end < 0) throw failure(shown, "missing ']' in host")
  const after = host.slice(end + 1)
  if (!/^(?::\d*)?$/.test(after)) throw failure(shown, `invalid port ${goQuote(after)} after host`)
  const unescaped = unescape(host, 'host', shown)
  const address = unescaped.slice(1, unescaped.lastIndexOf(']'))
  const [ip = '', ...zone] = address.split('%')
  if (isIP(ip) === 4) throw failure(shown, 'invalid IP-literal')
  if (isIP(ip) !== 6 || (address.includes('%') && zone.join('%') === ''))
    throw failure(shown, `invalid host: ParseAddr(${goQuote(address)}): unable to parse IP`)
  return unescaped
}

type Part = 'path' | 'host' | 'user' | 'query' | 'fragment'

// Characters that need no escaping in a host.
const hostChars = /^[A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"\x80-\u{10ffff}]$/u

function unescape(text: string, part: Part, shown: string): string {
  const bytes: Uint8Array[] = []
  for (let i = 0; i < text.length;) {
    const char = String.fromCodePoint(text.codePointAt(i) ?? 0)
    if (char === '%') {
      const escape = /^%[0-9a-fA-F]{2}/.exec(text.slice(i, i + 3))?.[0]
      if (escape === undefined) throw failure(shown, `invalid URL escape ${goQuote(text.slice(i, i + 3))}`)
      if (part === 'host' && parseInt(escape.slice(1), 16) < 0x80 && escape !== '%25')
        throw failure(shown, `invalid URL escape ${goQuote(escape)}`)
      bytes.push(Uint8Array.of(parseInt(escape.slice(1), 16)))
      i += 3
      continue
    }
    if (part === 'host' && !hostChars.test(char))
      throw failure(shown, `invalid character ${goQuote(char)} in host name`)
    bytes.push(Buffer.from(part === 'query' && char === '+' ? ' ' : char))
    i += char.length
  }
  return Buffer.concat(bytes).toString()
}

const escapePath = (path: string): string => escapeAll(path, /[A-Za-z0-9\-_.~$&+,/:;=@]/)

function escapeAll(text: string, plain: RegExp): string {
  let out = ''
  for (const byte of Buffer.from(text)) {
    const char = String.fromCharCode(byte)
    out += byte < 0x80 && plain.test(char) ? char : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return out
}

/** The path in escaped form, as it is sent. */
export function escapedPath({ path, rawPath }: GoUrl): string {
  if (rawPath !== '' && /^[A-Za-z0-9\-_.~$&+,/:;=@!'()*[\]%]*$/.test(rawPath)) return rawPath
  return path === '*' ? '*' : escapePath(path)
}

/** The whole URL. */
export function printUrl(url: GoUrl): string {
  let out = url.scheme === '' ? '' : `${url.scheme}:`
  if (url.opaque !== '') out += url.opaque
  else {
    const path = escapedPath(url)
    if (url.scheme !== '' || url.host !== '' || url.user !== undefined) {
      if (url.host !== '' || path !== '' || url.user !== undefined) out += '//'
      if (url.user !== undefined) out += `${escapeAll(url.user, /[A-Za-z0-9\-_.~$&+,;=:]/)}@`
      out += escapeAll(url.host, /[A-Za-z0-9\-_.~!$&'()*+,;=:[\]<>"]/)
    }
    out += path
  }
  if (url.query !== undefined) out += `?${url.query}`
  if (url.fragment !== undefined && url.fragment !== '')
    out += `#${escapeAll(url.fragment, /[A-Za-z0-9\-_.~$&+,/:;=@!'()*?]/)}`
  return out
}

/** The host without its port. */
export function hostname({ host }: GoUrl): string {
  const withoutPort = host.replace(/:\d*$/, '')
  return withoutPort.startsWith('[') && withoutPort.endsWith(']') ? withoutPort.slice(1, -1) : withoutPort
}

export const port = ({ host }: GoUrl): string => /:(\d*)$/.exec(host)?.[1] ?? ''

/** The parameters of the query, in the order in which each name first occurs. */
export function queryValues({ query = '' }: GoUrl): Map<string, string[]> {
  const values = new Map<string, string[]>()
  for (const pair of query.split('&')) {
    if (pair === '' || pair.includes(';')) continue
    const equals = pair.indexOf('=')
    const read = (text: string): string | undefined => {
      try {
        return unescape(text, 'query', query)
      } catch {
        return undefined
      }
    }
    const name = read(equals < 0 ? pair : pair.slice(0, equals))
    const value = read(equals < 0 ? '' : pair.slice(equals + 1))
    if (name === undefined || value === undefined) continue
    values.set(name, [...(values.get(name) ?? []), value])
  }
  return values
}
