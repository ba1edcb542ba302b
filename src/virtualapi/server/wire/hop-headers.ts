// The headers by which one of our processes tells another the address and the certificate of the client whose request
// it passes on, because only the first process has seen them. All other headers, credentials included, are passed on as
// they came.
import { LRUCache } from 'lru-cache'
import type { DetailedPeerCertificate } from 'node:tls'
import { headerOf } from '#virtualapi/request/exchange.ts'

const prefix = 'x-kcp-hop-'
const addressHeader = `${prefix}address`
const certificatesHeader = `${prefix}certificates`
/** The span of the request in the first process. */
export const hopTraceHeader = `${prefix}traceparent`
/** Maximum of certificates of a chain that are passed on; authentication reads no more. */
const maxChain = 4
const maxCached = 2000

/**
 * Headers that are not passed on: they are for one connection only (RFC 9110, section 7.6.1), or the first process has
 * acted on them. Pseudo headers are made anew.
 */
const ofConnection = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'transfer-encoding',
  'upgrade',
  'te',
  'trailer',
  'http2-settings',
  'expect',
  'host',
])

export function hasHopHeader(rawHeaders: readonly string[]): boolean {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? ''
    if ((name.charCodeAt(0) | 0x20) === 0x78 && name.toLowerCase().startsWith(prefix)) return true
  }
  return false
}

/** The client of a request as the first process saw it. */
export interface HopClient {
  readonly address: string | undefined
  readonly certificate: DetailedPeerCertificate | undefined
  /** The span of the request in the process that passes it on; undefined where nothing is traced. */
  readonly traceparent?: string | undefined
}

/** The headers that describe the client, as raw pairs. */
export function hopHeaders({ address, certificate, traceparent }: HopClient): string[] {
  const headers = [addressHeader, address ?? '']
  if (traceparent !== undefined) headers.push(hopTraceHeader, traceparent)
  if (certificate !== undefined) headers.push(certificatesHeader, textOf(certificate))
  return headers
}

/**
 * The client that the hop headers describe. Call this only for requests of our own processes: other clients can forge
 * the headers.
 */
export function hopClient(rawHeaders: readonly string[]): HopClient {
  const text = headerOf(rawHeaders, certificatesHeader)
  const address = headerOf(rawHeaders, addressHeader)
  return {
    address: address === '' ? undefined : address,
    certificate: text === undefined ? undefined : certificateOf(text),
  }
}

/** The headers to pass on, as raw pairs: all but pseudo headers and the headers of the connection. */
export function endToEndHeaders(rawHeaders: readonly string[]): string[] {
  const kept: string[] = []
  for (let i = 0; i + 1 < rawHeaders.length; i += 2) {
    const name = (rawHeaders[i] ?? '').toLowerCase()
    if (!name.startsWith(':') && !ofConnection.has(name)) kept.push(name, rawHeaders[i + 1] ?? '')
  }
  return kept
}

// All requests of a connection share one certificate object.
const texts = new WeakMap<DetailedPeerCertificate, string>()

function textOf(certificate: DetailedPeerCertificate): string {
  let text = texts.get(certificate)
  if (text === undefined) texts.set(certificate, (text = chainOf(certificate).join()))
  return text
}

function chainOf(certificate: DetailedPeerCertificate): string[] {
  const chain: string[] = []
  let next: Partial<DetailedPeerCertificate> | undefined = certificate
  while (next?.raw !== undefined && chain.length < maxChain) {
    const text = next.raw.toString('base64')
    // A self-signed certificate is its own issuer.
    if (chain.includes(text)) break
    chain.push(text)
    next = next.issuerCertificate
  }
  return chain
}

// There is one object for each chain, because authentication remembers its results by this object.
const certificates = new LRUCache<string, DetailedPeerCertificate>({ max: maxCached })

/**
 * The certificate with its issuers; undefined for an empty text. Only the bytes of the chain are set: authentication
 * reads nothing else of a certificate.
 */
function certificateOf(text: string): DetailedPeerCertificate | undefined {
  if (text === '') return undefined
  const known = certificates.get(text)
  if (known !== undefined) return known
  const chain = text.split(',', maxChain).map((raw) => ({ raw: Buffer.from(raw, 'base64') }))
  const read = chain.reduceRight<object>((issuerCertificate, { raw }) => ({ raw, issuerCertificate }), {})
  certificates.set(text, read as DetailedPeerCertificate)
  return read as DetailedPeerCertificate
}
