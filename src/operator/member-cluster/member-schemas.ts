// Fields of workloads that a member does not know: its OpenAPI documents are compared with ours when we connect to it
// and when its version changes. A member chooses its documents and their hashes, so they count for no other member.
import { LRUCache } from 'lru-cache'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { maxUnsupportedFields, workloadKinds, type UnsupportedFields } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'

interface Known {
  readonly client: KubeClient
  readonly version: string
  /** Undefined while the documents are compared. */
  fields?: UnsupportedFields[]
}

interface MemberSchemasOptions {
  /** A client of our own API; undefined while there is no logical cluster, so no workload either. */
  readonly ours: () => KubeClient | undefined
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called with the name of a member whose fields are known now. */
  readonly changed: (name: string) => void
}

/** How many of our documents are kept for the next member. */
const maxOwnDocuments = 8

export class MemberSchemas {
  readonly #options: MemberSchemasOptions
  readonly #known = new Map<string, Known>()
  readonly #own = new LRUCache<string, OpenApiDocument>({ max: maxOwnDocuments })

  constructor(options: MemberSchemasOptions) {
    this.#options = options
  }

  /** The fields that the member does not know; undefined until that is found out. Never waits. */
  unsupportedBy(name: string, client: KubeClient, version: string): UnsupportedFields[] | undefined {
    const known = this.#known.get(name)
    if (known?.client === client && known.version === version) return known.fields
    const ours = this.#options.ours()
    if (ours === undefined) return undefined
    const entry: Known = { client, version }
    this.#known.set(name, entry)
    void this.#compare(ours, client).then(
      (fields) => {
        entry.fields = fields
        this.#options.changed(name)
      },
      (error: unknown) => {
        // The next probe tries again.
        if (this.#known.get(name) === entry) this.#known.delete(name)
        this.#options.log.debug('could not read the schemas of a member', { member: name, error })
      },
    )
    return undefined
  }

  forget(name: string): void {
    this.#known.delete(name)
  }

  async #compare(ours: KubeClient, theirs: KubeClient): Promise<UnsupportedFields[]> {
    const [own, other] = await Promise.all([ours, theirs].map((client) => documentsOf(client, this.#options.signal)))
    const found: UnsupportedFields[] = []
    for (const [path, kinds] of kindsByDocument) {
      const [left, right] = [own?.get(path), other?.get(path)]
      if (left === undefined || hashOf(left) === hashOf(right)) continue
      const known = this.#own.get(left) ?? (await this.#read(ours, left))
      this.#own.set(left, known)
      const documents = { ours: known, theirs: right === undefined ? {} : await this.#read(theirs, right) }
      found.push(...kinds.flatMap((kind) => fieldsOf(documents, kind)))
    }
    return found
  }

  async #read(client: KubeClient, path: string): Promise<OpenApiDocument> {
    return (await client.raw(path, { signal: this.#options.signal })) as OpenApiDocument
  }
}

type Kind = (typeof workloadKinds)[number]

const kindsByDocument = Map.groupBy(workloadKinds, ({ gvr: { group, version } }) =>
  group === '' ? `api/${version}` : `apis/${group}/${version}`,
)

/** The template of a workload is compared once, as a pod. */
function fieldsOf(documents: Parameters<typeof missingFields>[0], { gvr, kind, paths }: Kind): UnsupportedFields[] {
  const without = paths.template.length === 0 ? [] : [paths.template.join('.')]
  const found = missingFields(documents, { ...gvr, kind }, without)
  return found.length === 0 ? [] : [{ kind, paths: found.slice(0, maxUnsupportedFields) }]
}

/** The path of each OpenAPI v3 document, with the hash of its content, relative to the API of the client. */
async function documentsOf(client: KubeClient, signal: AbortSignal): Promise<Map<string, string>> {
  const index = (await client.raw('/openapi/v3', { signal })) as { readonly paths?: unknown } | undefined
  const paths = isJsonObject(index?.paths) ? index.paths : {}
  return new Map(
    Object.entries(paths).flatMap(([path, entry]) => {
      const { serverRelativeURL: url } = isJsonObject(entry) ? entry : {}
      return typeof url === 'string' ? [[path, `/openapi/v3/${path}${url.slice(url.indexOf('?'))}`] as const] : []
    }),
  )
}

function hashOf(path: string | undefined): string | undefined {
  return path?.slice(path.indexOf('?'))
}

interface Schema {
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly items?: Schema
  readonly additionalProperties?: Schema | boolean
  readonly 'x-kubernetes-group-version-kind'?: readonly GroupVersionKind[]
}
interface GroupVersionKind {
  readonly group: string
  readonly version: string
  readonly kind: string
}

/** The part of an OpenAPI v3 document that is read. */
export interface OpenApiDocument {
  readonly components?: { readonly schemas?: Readonly<Record<string, Schema>> }
}

/** The pattern of a kind that the member does not serve at all. */
const wholeKind = '.'

/**
 * Patterns of the fields of a kind that only our document has, such as `spec.containers[*].restartPolicyRules`. A
 * missing field is listed without the fields inside it. Fields at the paths in `without` are not compared.
 */
export function missingFields(
  { ours, theirs }: Readonly<Record<'ours' | 'theirs', OpenApiDocument>>,
  gvk: GroupVersionKind,
  without: readonly string[] = [],
): string[] {
  const [own, other] = [definitionOf(ours, gvk), definitionOf(theirs, gvk)]
  if (own === undefined) return []
  if (other === undefined) return [wholeKind]
  const skipped = new Set(['.status', '.metadata', ...without.map((path) => `.${path}`)])
  const known = new Map<Schema, readonly string[]>()
  /** The patterns, relative to the two schemas. `path` serves to skip fields only; undefined below a list or map. */
  const compare = (one: Schema, two: Schema, path: string | undefined): readonly string[] => {
    const [left, right] = [resolved(ours, one), resolved(theirs, two)]
    const before = known.get(left)
    // Only fields near the top are skipped, so the result holds where the same definition is used again.
    if (before !== undefined) return before
    known.set(left, [])
    const found = Object.entries(left.properties ?? {}).flatMap(([name, field]) => {
      const here = path === undefined ? undefined : `${path}.${name}`
      if (here !== undefined && skipped.has(here)) return []
      const counterpart = right.properties?.[name]
      if (counterpart === undefined) return right.properties === undefined ? [] : [`.${name}`]
      return compare(field, counterpart, here).map((rest) => `.${name}${rest}`)
    })
    if (left.items && right.items)
      found.push(...compare(left.items, right.items, undefined).map((rest) => `[*]${rest}`))
    const [all, others] = [left.additionalProperties, right.additionalProperties]
    if (isJsonObject(all) && isJsonObject(others))
      found.push(...compare(all, others, undefined).map((rest) => `{*}${rest}`))
    known.set(left, found)
    return found
  }
  return compare(own, other, '').map((path) => path.slice(1))
}

function definitionOf({ components }: OpenApiDocument, { group, version, kind }: GroupVersionKind): Schema | undefined {
  return Object.values(components?.schemas ?? {}).find((schema) =>
    schema['x-kubernetes-group-version-kind']?.some(
      (one) => one.group === group && one.version === version && one.kind === kind,
    ),
  )
}

const prefix = '#/components/schemas/'

/** The schema behind references; documents wrap one in `allOf` to give it a default. */
function resolved({ components }: OpenApiDocument, schema: Schema): Schema {
  const { $ref = schema.allOf?.[0]?.$ref } = schema
  return $ref === undefined ? schema : (components?.schemas?.[$ref.slice(prefix.length)] ?? {})
}
