// The definitions that a logical cluster serves because of its APIBindings. All bindings of one revision of an export
// share one compiled form.
import { LRUCache } from 'lru-cache'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { groupResourceText, tryClusterName, type ClusterId } from '#apimachinery/meta/index.ts'
import { apiExportRevisions, revisionName, type APIBinding, type APIExportRevision } from '#crds/index.ts'
import type { ClusterObjects, Entry, WatchCache } from '#store/watch-cache/index.ts'
import {
  compileCrd,
  defaultCrd,
  type CompiledCrd,
  type CustomResourceDefinition,
} from '#virtualapi/catalog/apiextensions/index.ts'
import type { DefinitionSource, SharedDefinition } from '#virtualapi/catalog/sharing/definition-source.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import { bindingKey } from './sharing-index.ts'

export const revisionKey = groupResourceText(apiExportRevisions)

/** One revision of an export, as a binding refers to it. */
interface RevisionReference {
  readonly clusterName: string
  readonly exportUid: string
  readonly revision: number
}

/** A binding of a logical cluster as far as it gives resources. */
export interface BoundRevision extends RevisionReference {
  /** PLURAL.GROUP of each resource. */
  readonly resources: readonly string[]
  readonly isDeleting: boolean
  /** The admission that the export brings here; undefined: none. */
  readonly admission: BoundAdmission | undefined
}

/** The parts of a provider's admission that a consumer has accepted. */
export interface BoundAdmission {
  readonly webhooks: boolean
  readonly policies: boolean
  /** Nobody may write objects before both are accepted. */
  readonly isRequired: boolean
}

/** A definition of a revision. */
export interface RevisionDefinition {
  readonly compiled: CompiledCrd
  readonly read: () => CustomResourceDefinition
  /** The name and the uid of the object that the definition comes from. */
  readonly schemaName: string
  readonly uid: string
}
/** The definitions of a revision, by PLURAL.GROUP. */
export type RevisionDefinitions = ReadonlyMap<string, RevisionDefinition>

/** Bounds of the definitions that are in memory without being in use, by the length of their texts. */
const maxKeptCharacters = 64 * 1024 * 1024
const maxKept = 10_000

export class BindingSource implements DefinitionSource {
  readonly #watchCache: Pick<WatchCache, 'cluster'>
  readonly #directory: Pick<ClusterDirectory, 'byName'>
  readonly #kept = new LRUCache<string, { readonly definitions: RevisionDefinitions; readonly size: number }>({
    max: maxKept,
    maxSize: maxKeptCharacters,
    sizeCalculation: ({ size }) => size,
  })
  // A binding in memory keeps its definitions in memory, however many others there are.
  readonly #byBinding = new WeakMap<Entry, BoundDefinitions>()
  /** The definitions as bindings show them, by what the bindings show: thousands of bindings show the same. */
  readonly #shown = new WeakMap<RevisionDefinitions, Map<string, BoundDefinitions>>()

  constructor({
    watchCache,
    directory,
  }: {
    readonly watchCache: Pick<WatchCache, 'cluster'>
    readonly directory: Pick<ClusterDirectory, 'byName'>
  }) {
    this.#watchCache = watchCache
    this.#directory = directory
  }

  find(objects: ClusterObjects, name: string): SharedDefinition | undefined {
    for (const entry of this.#bindings(objects)) {
      const found = this.#byBinding.get(entry)?.get(name)
      if (found !== undefined) return found
    }
    return undefined
  }

  all(objects: ClusterObjects): readonly SharedDefinition[] {
    return this.#bindings(objects).flatMap((entry) => [...(this.#byBinding.get(entry)?.values() ?? [])])
  }

  load(objects: ClusterObjects, signal: AbortSignal): Promise<void> | undefined {
    const missing = this.#bindings(objects).filter((entry) => !this.#byBinding.has(entry))
    if (missing.length === 0) return undefined
    return Promise.all(missing.map((entry) => this.#loadBinding(entry, signal))).then(() => undefined)
  }

  /** The definitions of a revision; undefined if the revision does not exist any more. */
  async definitionsOf(reference: RevisionReference, signal: AbortSignal): Promise<RevisionDefinitions | undefined> {
    const { clusterName, exportUid, revision } = reference
    const id = this.#clusterOf(clusterName)
    if (id === undefined) return undefined
    const key = `${id}/${exportUid}/${revision}`
    const kept = this.#kept.get(key)
    if (kept !== undefined) return kept.definitions
    const provider = await this.#watchCache.cluster(id, { signal })
    const entry = provider.get(revisionKey, '', revisionName(exportUid, revision))
    const found = entry && definitionsIn(decodeObject(entry.bytes) as unknown as APIExportRevision, exportUid)
    if (found !== undefined) this.#kept.set(key, { definitions: found, size: entry?.size ?? 1 })
    return found
  }

  #clusterOf(clusterName: string): ClusterId | undefined {
    const name = tryClusterName(clusterName)
    return name === undefined ? undefined : this.#directory.byName(name)?.id
  }

  async #loadBinding(entry: Entry, signal: AbortSignal): Promise<void> {
    const bound = boundRevision(entry)
    const definitions = bound && (await this.definitionsOf(bound, signal))
    const isGiven = bound !== undefined && definitions !== undefined
    this.#byBinding.set(entry, isGiven ? this.#shownBy(bound, definitions) : nothing)
  }

  #shownBy({ resources, isDeleting }: BoundRevision, definitions: RevisionDefinitions): BoundDefinitions {
    const all = this.#shown.get(definitions) ?? new Map<string, BoundDefinitions>()
    this.#shown.set(definitions, all)
    const key = `${isDeleting}/${resources.join()}`
    const known = all.get(key)
    if (known !== undefined) return known
    const shown = new Map<string, SharedDefinition>()
    for (const name of resources) {
      const definition = definitions.get(name)
      if (definition === undefined) continue
      const { compiled, read } = definition
      shown.set(name, { compiled, read, isTerminating: isDeleting })
    }
    all.set(key, shown)
    return shown
  }

  /** The bindings of a logical cluster, oldest name first. */
  #bindings(objects: ClusterObjects): readonly Entry[] {
    return objects.count({ resource: bindingKey }) === 0 ? [] : objects.list({ resource: bindingKey })
  }
}

/** By PLURAL.GROUP. */
type BoundDefinitions = ReadonlyMap<string, SharedDefinition>
const nothing: BoundDefinitions = new Map()

const boundRevisions = new WeakMap<Entry, BoundRevision | 'none'>()
/** Equal revisions of thousands of bindings, kept once. */
const sharedRevisions = new LRUCache<string, BoundRevision>({
  max: 10_000,
  maxSize: 8 << 20,
  sizeCalculation: (_, { length }) => length + 1,
})

/** The revision that a binding gives to its logical cluster; undefined while it gives none. */
export function boundRevision(entry: Entry): BoundRevision | undefined {
  let known = boundRevisions.get(entry)
  if (known === undefined) boundRevisions.set(entry, (known = readBound(entry) ?? 'none'))
  return known === 'none' ? undefined : known
}

function readBound(entry: Entry): BoundRevision | undefined {
  const { metadata, spec, status } = decodeObject(entry.bytes) as APIBinding
  const { apiExportClusterName: clusterName, exportUID: exportUid, revision, boundResources = [] } = status ?? {}
  if (clusterName === undefined || exportUid === undefined || revision === undefined) return undefined
  const bound: BoundRevision = {
    clusterName,
    exportUid,
    revision,
    resources: boundResources.map(({ group, resource }) => groupResourceText({ group, resource })),
    isDeleting: metadata.deletionTimestamp !== undefined,
    admission: status?.exportAdmission && {
      webhooks: spec?.admission?.webhooks === 'Accepted',
      policies: spec?.admission?.policies === 'Accepted',
      isRequired: status.exportAdmission.required === true,
    },
  }
  const key = JSON.stringify(bound)
  const known = sharedRevisions.get(key)
  if (known !== undefined) return known
  sharedRevisions.set(key, bound)
  return bound
}

/** The definitions of a revision; undefined if it belongs to another export. */
function definitionsIn({ spec }: APIExportRevision, exportUid: string): RevisionDefinitions | undefined {
  if (spec.export.uid !== exportUid) return undefined
  return new Map(
    spec.definitions.map(({ name, text, schemaName, uid }) => {
      const read = (): CustomResourceDefinition => definitionOf(name, text, spec.revision)
      return [name, { compiled: compileCrd(read()), read, schemaName, uid }]
    }),
  )
}

/** A CustomResourceDefinition from the text of its spec. */
function definitionOf(name: string, text: string, revision: number): CustomResourceDefinition {
  const spec = parseJsonText(text) as unknown as CustomResourceDefinition['spec']
  // Stored objects may follow the schema of an earlier revision.
  const metadata = { name, generation: revision }
  const crd = { apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition', metadata, spec }
  defaultCrd(crd)
  return crd
}
