// The signing keys of an issuer: found by OpenID Connect Discovery, kept while the issuer does not answer, and read again
// when a token names a key that is not known. Nobody can make us ask an issuer more often than that.
import { createLocalJWKSet, type JWTVerifyGetKey } from 'jose'
import type { Clock } from '#async/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'

/** Reads a document by GET. Rejects if there is no answer with status 200 in time. */
export type ReadDocument = (url: string, signal: AbortSignal) => Promise<string>

export interface IssuerKeysOptions {
  readonly url: string
  readonly discoveryURL?: string
  readonly read: ReadDocument
  readonly clock: Clock
  /** Called when the keys can be read again, or for another reason cannot be read. Must not throw. */
  readonly onOutcome?: () => void
}

/** How long keys are used before they are read again, milliseconds: a key that was withdrawn counts so long. */
const freshMs = 5 * 60_000
/** The time between two attempts to read keys, milliseconds. */
const againMs = 10_000
/** How long keys count while the issuer does not answer, milliseconds. */
const staleMs = 24 * 3_600_000
const timeoutMs = 10_000
const maxKeys = 100

interface Known {
  readonly find: JWTVerifyGetKey
  readonly ids: ReadonlySet<string>
  readonly readAt: number
  /** Milliseconds since 1970. */
  readonly readDate: number
}

export class IssuerKeys {
  readonly #options: IssuerKeysOptions
  #known: Known | undefined
  #reading: Promise<Known> | undefined
  /** When reading began last; monotonic milliseconds. */
  #triedAt = -Infinity
  #problem: string | undefined

  constructor(options: IssuerKeysOptions) {
    this.#options = options
  }

  /** Why the issuer's keys could not be read; undefined if they were, or nobody has asked yet. */
  get problem(): string | undefined {
    return this.#problem
  }

  /** Until when the keys that are known count without the issuer, milliseconds since 1970; undefined: none are known. */
  get countUntil(): number | undefined {
    return this.#known && this.#known.readDate + staleMs
  }

  /** The keys for a token whose header names this key; rejects if no keys are known. */
  async forKey(id: string | undefined): Promise<JWTVerifyGetKey> {
    const { clock } = this.#options
    const now = clock.monotonic()
    const known = this.#known
    const age = known === undefined ? Infinity : now - known.readAt
    const lacksKey = known !== undefined && id !== undefined && !known.ids.has(id)
    const mayTry = now - this.#triedAt >= againMs
    if (this.#reading !== undefined && (age > staleMs || lacksKey)) return (await this.#reading).find
    if (mayTry && (age > staleMs || lacksKey)) return (await this.#readAgain()).find
    // The next token, not this one, has the keys that are read now.
    if (mayTry && age > freshMs) this.#readAgain().catch(() => undefined)
    if (known === undefined || age > staleMs) throw new Error(this.#problem ?? 'its keys are not known yet')
    return known.find
  }

  #readAgain(): Promise<Known> {
    if (this.#reading !== undefined) return this.#reading
    this.#triedAt = this.#options.clock.monotonic()
    const reading = this.#read()
      .then((known) => {
        this.#known = known
        this.#ended(undefined)
        return known
      })
      .catch((error: unknown) => {
        this.#ended(error instanceof Error ? error.message : String(error))
        // A key that is not known may be forged: the known ones still count.
        if (this.#known !== undefined && this.#options.clock.monotonic() - this.#known.readAt <= staleMs)
          return this.#known
        throw error
      })
      .finally(() => (this.#reading = undefined))
    return (this.#reading = reading)
  }

  #ended(problem: string | undefined): void {
    const hasChanged = problem !== this.#problem
    this.#problem = problem
    if (hasChanged) this.#options.onOutcome?.()
  }

  async #read(): Promise<Known> {
    const { url, discoveryURL, read, clock } = this.#options
    const signal = AbortSignal.timeout(timeoutMs)
    const where = discoveryURL ?? `${url.replace(/\/+$/, '')}/.well-known/openid-configuration`
    const { issuer, jwks_uri: keysUrl } = parseObject(await read(where, signal), where)
    if (issuer !== url) throw new Error(`${where} is of issuer "${String(issuer)}", not "${url}"`)
    if (typeof keysUrl !== 'string' || !URL.canParse(keysUrl) || new URL(keysUrl).protocol !== 'https:')
      throw new Error(`${where} has no jwks_uri with https`)
    const { keys } = parseObject(await read(keysUrl, signal), keysUrl)
    if (!Array.isArray(keys)) throw new Error(`${keysUrl} has no keys`)
    const used = keys.filter(isJsonObject).slice(0, maxKeys)
    const ids = used.flatMap(({ kid }) => (typeof kid === 'string' ? [kid] : []))
    const find = createLocalJWKSet({ keys: used })
    return { find, ids: new Set(ids), readAt: clock.monotonic(), readDate: clock.now() }
  }
}

function parseObject(text: string, url: string): Record<string, unknown> {
  try {
    const parsed: unknown = parseJsonText(text)
    if (isJsonObject(parsed)) return parsed
  } catch {
    // Told below.
  }
  throw new Error(`${url} is no JSON object`)
}
