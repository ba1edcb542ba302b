// The files of the page, as the build of folder `console` leaves them in dist/console. They are read when the first
// browser asks, and kept.
import { randomBytes } from 'node:crypto'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { BytesResponse } from '#virtualapi/request/exchange.ts'

interface Asset {
  readonly type: string
  readonly bytes: Uint8Array
  /** The same, compressed by Brotli. */
  readonly brotli: Uint8Array | undefined
}

interface Page {
  /** index.html between the places of the nonce. */
  readonly html: readonly string[]
  /** The assets by name. */
  readonly assets: ReadonlyMap<string, Asset>
}

/** From the place of this module in the sources, and in the build. */
const folders = ['../../../dist/console/', '../../../console/'].map((path) =>
  fileURLToPath(new URL(path, import.meta.url)),
)

const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
  webmanifest: 'application/manifest+json',
}

const noncePlace = '__CSP_NONCE__'

/** Headers of everything that the console itself answers. */
export const ownHeaders: Readonly<Record<string, string>> = {
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy': 'camera=(), microphone=(), geolocation=()',
}

const policy = (nonce: string): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "connect-src 'self'",
    "img-src 'self' data:",
    "font-src 'self'",
    "manifest-src 'self'",
    "frame-ancestors 'none'",
    "base-uri 'none'",
    "form-action 'self'",
  ].join('; ')

/** A policy under which nothing runs, for answers that are no page. */
export const inert = "default-src 'none'; sandbox; frame-ancestors 'none'"

export class PageFiles {
  readonly #folder: string | undefined
  #page: Page | undefined

  /** `folder`: where the files are; default: where the build leaves them. */
  constructor(folder?: string) {
    this.#folder = folder
  }

  /** The page itself, with a nonce of its own for the styles that it adds. */
  index(): BytesResponse {
    const page = this.#read()
    if (page === undefined) return plain(503, 'The console is not part of this build: npm run build makes it.\n')
    const nonce = randomBytes(16).toString('base64')
    return {
      kind: 'bytes',
      status: 200,
      headers: {
        ...ownHeaders,
        'content-type': 'text/html; charset=utf-8',
        'cache-control': 'no-store',
        'content-security-policy': policy(nonce),
      },
      body: Buffer.from(page.html.join(nonce)),
    }
  }

  /** A file of the folder `assets`; undefined if there is none of this name. Their names change with their content. */
  asset(name: string, acceptEncoding: string): BytesResponse | undefined {
    const asset = this.#read()?.assets.get(name)
    if (asset === undefined) return undefined
    const isCompressed = asset.brotli !== undefined && /\bbr\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/.test(acceptEncoding)
    return {
      kind: 'bytes',
      status: 200,
      headers: {
        ...ownHeaders,
        'content-type': asset.type,
        'content-security-policy': inert,
        'cache-control': 'public, max-age=31536000, immutable',
        vary: 'Accept-Encoding',
        ...(isCompressed && { 'content-encoding': 'br' }),
      },
      body: (isCompressed ? asset.brotli : undefined) ?? asset.bytes,
    }
  }

  #read(): Page | undefined {
    if (this.#page !== undefined) return this.#page
    const folder = this.#folder ?? folders.find((path) => existsSync(`${path}index.html`))
    if (folder === undefined || !existsSync(`${folder}/index.html`)) return undefined
    const assets = new Map<string, Asset>()
    for (const name of existsSync(`${folder}/assets`) ? readdirSync(`${folder}/assets`) : []) {
      const type = types[name.slice(name.lastIndexOf('.') + 1)]
      if (type === undefined) continue
      const file = `${folder}/assets/${name}`
      const brotli = existsSync(`${file}.br`) ? readFileSync(`${file}.br`) : undefined
      assets.set(name, { type, bytes: readFileSync(file), brotli })
    }
    this.#page = { html: readFileSync(`${folder}/index.html`, 'utf8').split(noncePlace), assets }
    return this.#page
  }
}

/** A sentence as text. */
export function plain(status: number, text: string): BytesResponse {
  const headers = { ...ownHeaders, 'content-type': 'text/plain; charset=utf-8', 'content-security-policy': inert }
  return { kind: 'bytes', status, headers: { ...headers, 'cache-control': 'no-store' }, body: Buffer.from(text) }
}
