// Which fields of workloads a member does not know: its OpenAPI documents are compared with ours when we connect to it and
// when its version changes. A member chooses its documents and their hashes, so nothing that they say counts for another member.
import { LRUCache } from 'lru-cache'
import type { KubeClient } from '#client/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import { maxUnsupportedFields, workloadKinds, type UnsupportedFields } from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { missingFields, type OpenApiDocument } from './missing-fields.ts'

interface Known {
  readonly client: KubeClient
  readonly version: string
  /** Undefined while the documents are compared. */
  fields?: UnsupportedFields[]
}

export interface MemberSchemasOptions {
  /** A client of our own API; undefined while there is no logical cluster, so no workload either. */
  readonly ours: () => KubeClient | undefined
  readonly log: Logger
  readonly signal: AbortSignal
  /** Called with the name of a member whose fields are known now. */
  readonly changed: (name: string) => void
}

/** Our documents that are kept for the next member. */
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
