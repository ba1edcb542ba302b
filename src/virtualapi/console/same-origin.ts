// Checks that a request comes from the console's own page. Browsers send the cookie with the requests of any page, so
// the headers that browsers add, and pages cannot set, must name the console's page.
import { isIP } from 'node:net'
import { forbidden, statusError, type StatusError } from '#apimachinery/status/index.ts'
import { headerOf } from '#virtualapi/request/exchange.ts'

/** The origins of the console. */
export interface Origins {
  /** Further origins than the address of a request itself: `https://console.example.com`. */
  readonly extra: ReadonlySet<string>
  /** Host names at which this server is the console. Addresses and `localhost` always are. */
  readonly hosts: ReadonlySet<string>
}

/** The header that the page adds to what writes: pages of other origins cannot, without being asked for permission. */
const pageHeader = 'x-kcp-console'

/** The origins from configuration. Throws a plain Error for a text that is no origin of https. */
export function originsOf(extra: readonly string[], hosts: readonly string[]): Origins {
  const urls = extra.map((text) => {
    const url = URL.canParse(text) ? new URL(text) : undefined
    if (url?.protocol !== 'https:' || url.origin !== text.replace(/\/$/, ''))
      throw new Error(`"${text}" is no origin such as https://console.example.com`)
    return url
  })
  return {
    extra: new Set(urls.map(({ origin }) => origin)),
    hosts: new Set([...hosts, ...urls.map(({ hostname }) => hostname)].map((name) => name.toLowerCase())),
  }
}

/**
 * Throws 421 if the request names a host that is not this server. A page whose host name leads to this server's address
 * (DNS rebinding) has another origin, and must not be served there.
 */
export function requireOwnHost(rawHeaders: readonly string[], { hosts }: Origins): void {
  const name = urlOfHost(rawHeaders)?.hostname
  if (name === undefined) throw statusError(400, 'BadRequest', 'the request names no host')
  if (isIP(name.replace(/^\[|\]$/g, '')) !== 0 || name === 'localhost' || hosts.has(name)) return
  const what = `the console is not served as ${JSON.stringify(name)}: start kcp with --console-origin https://${name}`
  throw statusError(421, 'MisdirectedRequest', what)
}

/** Throws 403 for a read that another origin caused. Browsers say so; other clients say nothing. */
export function requireOwnRead(rawHeaders: readonly string[]): void {
  const site = headerOf(rawHeaders, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin' && site !== 'none') throw crossSite()
}

/** Throws 403 for a write that is not certainly the page's own. */
export function requireOwnWrite(rawHeaders: readonly string[], origins: Origins): void {
  requireOwnUpgrade(rawHeaders, origins)
  if (headerOf(rawHeaders, pageHeader) !== '1') throw crossSite()
}

/** Throws 403 for an upgrade that is not certainly the page's own. Pages can add no header to it. */
export function requireOwnUpgrade(rawHeaders: readonly string[], { extra }: Origins): void {
  const site = headerOf(rawHeaders, 'sec-fetch-site')
  if (site !== undefined && site !== 'same-origin') throw crossSite()
  const [origin, ...others] = valuesOf(rawHeaders, 'origin')
  if (origin === undefined || others.length > 0) throw crossSite()
  if (origin !== urlOfHost(rawHeaders)?.origin && !extra.has(origin)) throw crossSite()
}

/** Throws 403 for a request that a page opens as a document, a frame, an image or a script, not by its own program. */
export function requireFetched(rawHeaders: readonly string[]): void {
  const destination = headerOf(rawHeaders, 'sec-fetch-dest')
  if (destination !== undefined && destination !== 'empty' && destination !== 'websocket') throw notAPage()
}

function crossSite(): StatusError {
  return forbidden({ group: '', resource: '' }, '', 'the request does not come from the page of the console')
}

function notAPage(): StatusError {
  return forbidden(
    { group: '', resource: '' },
    '',
    'below /console/k8s is the API for the page of the console, no page',
  )
}

function urlOfHost(rawHeaders: readonly string[]): URL | undefined {
  const names = [...valuesOf(rawHeaders, ':authority'), ...valuesOf(rawHeaders, 'host')]
  const [host] = names
  // Two different names would leave open which of them the browser means.
  if (host === undefined || names.some((name) => name !== host) || !/^[\w.:[\]-]+$/.test(host)) return undefined
  return URL.canParse(`https://${host}`) ? new URL(`https://${host}`) : undefined
}

/** All values of a header with this lower-case name. */
export function valuesOf(rawHeaders: readonly string[], name: string): string[] {
  return rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1]?.toLowerCase() === name)
}
