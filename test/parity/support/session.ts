// The requests of one row of a table to one server, and the record of the server's answers.
import { builtInResourceOfKind } from '#virtualapi/kinds/resources/builtin-resources.ts'
import {
  isJsonObject,
  parseApiVersion,
  resourcePath,
  type JsonObject,
  type JsonValue,
} from '#apimachinery/meta/index.ts'
import { waitFor } from '#test/support/index.ts'
import { comparableResponse, type ApiResponse } from './comparable-answer.ts'
import type { RequestOptions, Side } from './side.ts'

/** A manifest: `kind` and `apiVersion` determine its path; without a namespace it belongs to that of the session. */
export type Manifest = JsonObject & { apiVersion: string; kind: string; metadata: JsonObject }

export interface Exchange {
  readonly asked: string
  readonly answer: ApiResponse
}

export interface SendOptions extends RequestOptions {
  /** Not recorded: preparation only. */
  readonly quiet?: boolean
  /** Paths such as `metadata.finalizers` that are not recorded. */
  readonly without?: readonly string[]
}

export type PatchType = 'json' | 'merge' | 'strategic' | 'apply'
const patchTypes: Readonly<Record<PatchType, string>> = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

/** In texts and bodies, `$ID` is replaced by the word of this run and `$NS` by its namespace. */
export class Session {
  readonly transcript: Exchange[] = []
  private readonly side: Side
  private readonly words: Readonly<Record<string, string>>
  private readonly placeholders: Readonly<Record<string, string>>
  /** Revision of the last write, by path. */
  private readonly revisions = new Map<string, number>()

  constructor(side: Side, { id, namespace }: { id: string; namespace: string }) {
    this.side = side
    this.words = { $ID: id, $NS: namespace }
    this.placeholders = { [namespace]: '$NS', [id]: '$ID' }
  }

  /** Sends a request and records the answer. */
  async send(
    method: string,
    path: string,
    { quiet = false, without = [], body, ...options }: SendOptions = {},
  ): Promise<ApiResponse> {
    const sent = body === undefined ? {} : { body: this.filledText(body) }
    const headers = {
      headers: this.filledIn({ 'user-agent': 'parity/1.0', ...options.headers }) as Record<string, string>,
    }
    const target = this.filledIn(path) as string
    const written = this.writtenAt(target)
    if (method !== 'GET' && written !== undefined) await this.untilCacheHas(written)
    const {
      status,
      headers: got,
      text,
    } = await this.whenStorageIsReady(() => this.side.request(method, target, { ...options, ...sent, ...headers }))
    const response = { status, warnings: warningsOf(got['warning']), body: parsed(text) }
    if (status < 300) this.remember(method, target, response.body)
    if (!quiet) this.record(`${method} ${path}`, { ...response, body: leaveOut(response.body, without) })
    return response
  }

  /**
   * A real server applies changes to its cached object; if the cache lags, its second attempt may conflict with its
   * first: a port of a Service "is already allocated", to itself.
   */
  private async untilCacheHas(path: string): Promise<void> {
    const wanted = this.revisions.get(path) ?? 0
    const probe = async (): Promise<boolean> => {
      const { status, text } = await this.side.request('GET', `${path}?resourceVersion=0`)
      return status !== 200 || revisionOf(parsed(text)) >= wanted
    }
    await waitFor(probe, { what: `the cache to have ${path}`, deadlineMs: 30_000, intervalMs: 5 })
  }

  private remember(method: string, target: string, body: JsonValue): void {
    const [path = '', query = ''] = target.split('?')
    const revision = revisionOf(body)
    if (revision === 0 || query.includes('dryRun')) return
    const name = valueAt(body, 'metadata.name')
    if (method === 'POST' && typeof name === 'string') this.revisions.set(`${path}/${name}`, revision)
    else if (method === 'PUT' || method === 'PATCH') this.revisions.set(this.writtenAt(path) ?? path, revision)
  }

  /** The path of a written object that is, or has as a subresource, this path. */
  private writtenAt(target: string): string | undefined {
    const [path = ''] = target.split('?')
    const owner = path.slice(0, path.lastIndexOf('/'))
    return [path, owner].find((one) => this.revisions.has(one))
  }

  /** A real server answers 429 for a moment after a definition was created or changed: retries like a client. */
  private async whenStorageIsReady<T extends { status: number; text: string }>(ask: () => Promise<T>): Promise<T> {
    let last: T | undefined
    const probe = async (): Promise<boolean> => {
      last = await ask()
      return !(last.status === 429 && last.text.includes('storage is (re)initializing'))
    }
    await waitFor(probe, { what: 'the storage of a kind', deadlineMs: 30_000 })
    return last as T
  }

  get = (path: string, options?: SendOptions): Promise<ApiResponse> => this.send('GET', path, options)
  delete = (path: string, body?: unknown, options?: SendOptions): Promise<ApiResponse> =>
    this.send('DELETE', path, { ...(body === undefined ? {} : { body }), ...options })

  patch(path: string, body: unknown, type: PatchType = 'merge', options: SendOptions = {}): Promise<ApiResponse> {
    return this.send('PATCH', path, {
      ...options,
      body,
      headers: { ...options.headers, 'content-type': patchTypes[type] },
    })
  }

  /** POST of a built-in object to its collection. */
  create(object: Manifest, options: SendOptions & { query?: string; subresource?: string } = {}): Promise<ApiResponse> {
    const { query = '', subresource, ...rest } = options
    const path = subresource === undefined ? pathOf(object, { collection: true }) : `${pathOf(object)}/${subresource}`
    return this.send('POST', path + query, { ...rest, body: object })
  }

  /** PUT of a built-in object, unchanged. */
  put(object: Manifest, options: SendOptions & { query?: string; subresource?: string } = {}): Promise<ApiResponse> {
    const { query = '', subresource, ...rest } = options
    return this.send('PUT', pathOf(object) + (subresource === undefined ? '' : `/${subresource}`) + query, {
      ...rest,
      body: object,
    })
  }

  /** PUT of the stored object with a change. */
  async change(
    path: string,
    change: (object: JsonObject) => void,
    { subresource, ...options }: SendOptions & { subresource?: string } = {},
  ): Promise<ApiResponse> {
    const { body } = await this.get(path, { quiet: true })
    const object = structuredClone(body) as JsonObject
    change(object)
    return this.send('PUT', path + (subresource === undefined ? '' : `/${subresource}`), { ...options, body: object })
  }

  /** Repeats the request until the answer is as wanted, and records that answer; after `deadlineMs` the last one. */
  async until(
    path: string,
    wanted: (response: ApiResponse) => boolean,
    { deadlineMs = 15_000, without = [] }: { deadlineMs?: number; without?: readonly string[] } = {},
  ): Promise<ApiResponse> {
    let last: ApiResponse = { status: 0, warnings: [], body: null }
    const probe = async (): Promise<boolean> => wanted((last = await this.get(path, { quiet: true })))
    const came = await waitFor(probe, { what: path, deadlineMs, intervalMs: 25 }).catch(() => false)
    this.record(`${came ? 'UNTIL' : 'NEVER'} ${path}`, { ...last, body: leaveOut(last.body, without) })
    return last
  }

  /** Waits for an answer without recording it. Rejects after `deadlineMs`. */
  async untilQuiet(
    path: string,
    wanted: (response: ApiResponse) => boolean,
    { deadlineMs = 60_000 } = {},
  ): Promise<void> {
    const probe = async (): Promise<boolean> => wanted(await this.get(path, { quiet: true }))
    await waitFor(probe, { what: path, deadlineMs, intervalMs: 25 })
  }

  /** Waits until a dry run of creating this object is refused. */
  async untilRefused(path: string, body: unknown): Promise<void> {
    const probe = async (): Promise<boolean> =>
      (await this.send('POST', `${path}?dryRun=All`, { body, quiet: true })).status === 422
    await waitFor(probe, { what: `${path} to refuse`, deadlineMs: 15_000, intervalMs: 25 })
  }

  /** Repeats a request, unrecorded, until the answer is as wanted. */
  async untilAnswered(
    method: string,
    path: string,
    body: unknown,
    wanted: (response: ApiResponse) => boolean,
  ): Promise<void> {
    const probe = async (): Promise<boolean> => wanted(await this.send(method, path, { body, quiet: true }))
    await waitFor(probe, { what: `${method} ${path}`, deadlineMs: 15_000, intervalMs: 25 })
  }

  /** Waits until a dry run of creating this object is warned of. */
  async untilWarned(path: string, body: unknown): Promise<void> {
    const probe = async (): Promise<boolean> =>
      (await this.send('POST', `${path}?dryRun=All`, { body, quiet: true })).warnings.length > 0
    await waitFor(probe, { what: `${path} to warn`, deadlineMs: 15_000, intervalMs: 25 })
  }

  /** Records a value that the row derived from an answer. */
  note(what: string, value: JsonValue): void {
    this.record(what, { status: 0, warnings: [], body: value })
  }

  private record(asked: string, response: ApiResponse): void {
    this.transcript.push({ asked, answer: comparableResponse(response, this.placeholders) })
  }

  private filledIn(value: unknown): unknown {
    const filled = this.filledText(value)
    return typeof value === 'string' ? filled : (JSON.parse(filled) as unknown)
  }

  /** A string is taken as it is, anything else as JSON. */
  private filledText(value: unknown): string {
    const text = typeof value === 'string' ? value : JSON.stringify(value)
    return Object.entries(this.words).reduce((all, [word, meaning]) => all.replaceAll(word, meaning), text)
  }
}

/** The path of a built-in object, in the session's namespace unless it names one. */
export function pathOf(object: Manifest, { collection = false } = {}): string {
  const info = builtInResourceOfKind({ ...parseApiVersion(object.apiVersion), kind: object.kind })
  if (info === undefined) throw new Error(`${object.apiVersion} ${object.kind} is not built in`)
  const { name, namespace } = object.metadata
  const path = resourcePath(info, {
    ...(info.namespaced ? { namespace: typeof namespace === 'string' ? namespace : '$NS' } : {}),
    ...(collection ? {} : { name: typeof name === 'string' ? name : '' }),
  })
  return path.replaceAll('%24', '$')
}

function warningsOf(header: string | string[] | undefined): string[] {
  return header === undefined ? [] : [header].flat()
}

/** The body as JSON. Numbers that JavaScript prints differently keep their text. */
function parsed(text: string): JsonValue {
  try {
    return JSON.parse(text, asWritten) as JsonValue
  } catch {
    return text
  }
}

function asWritten(_key: string, value: unknown, context?: { readonly source?: string }): unknown {
  const source = context?.source
  return typeof value !== 'number' || source === undefined || String(value) === source ? value : `number ${source}`
}

function leaveOut(body: JsonValue, paths: readonly string[]): JsonValue {
  const copy = structuredClone(body)
  for (const path of paths) {
    const dot = path.lastIndexOf('.')
    const owner = dot < 0 ? copy : valueAt(copy, path.slice(0, dot))
    if (isJsonObject(owner)) Reflect.deleteProperty(owner, path.slice(dot + 1))
  }
  return copy
}

function revisionOf(body: JsonValue): number {
  return Number(valueAt(body, 'metadata.resourceVersion') ?? 0) || 0
}

/** The value at path `a.b.0.c` of an answer. */
export function valueAt(value: JsonValue | undefined, path: string): JsonValue | undefined {
  return path
    .split('.')
    .reduce<JsonValue | undefined>(
      (inner, key) => (isJsonObject(inner) ? inner[key] : Array.isArray(inner) ? inner[Number(key)] : undefined),
      value,
    )
}
