// Makes the views of exports, and finds the definitions of the resources in them.
import { groupResourceText, tryClusterId, type GroupVersionResource } from '#apimachinery/meta/index.ts'
import type { ExportFacts } from '#reconcile/object-graph/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { builtInResources } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { boundRevision, type BindingSource } from './binding-source.ts'
import type { ClaimReference } from '#crds/index.ts'
import { claimsIn, referencesIn, resourcesOf } from './claims.ts'
import { ReferenceIndex, type ReferenceDependencies } from './reference-index.ts'
import type { SharedDefinition } from './definition-source.ts'
import { ExportView } from './export-view.ts'
import { bindingKey, type SharingIndex } from './sharing-index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { systemDefinition } from './system-definitions.ts'

const bindingResource = 'apibindings.apis.kcp.io'

export interface ViewSourceParts extends ReferenceDependencies {
  readonly index: SharingIndex
  readonly bindings: BindingSource
  readonly directory: Pick<ClusterDirectory, 'byId' | 'byName'>
}

/** The resources of a view, for discovery. */
export interface ViewResources {
  readonly definitions: readonly SharedDefinition[]
  readonly builtIn: readonly ResourceInfo[]
  /** PLURAL.GROUP of claimed definitions of consumers. */
  readonly own: readonly string[]
}

export class ViewSource {
  readonly #parts: ViewSourceParts
  /** By export and reference. */
  readonly #indexes = new Map<string, ReferenceIndex>()

  constructor(parts: ViewSourceParts) {
    this.#parts = parts
  }

  /** The view of an export; undefined if there is no such export. */
  async viewOf(provider: LogicalCluster, exportName: string, now: number): Promise<ExportView | undefined> {
    const { index, directory } = this.#parts
    await index.ready()
    const facts = index.exportOf({ cluster: provider.id, path: undefined, exportName })
    if (facts === undefined) return undefined
    const references = (reference: ClaimReference): ReferenceIndex => this.#referenceIndex(facts, reference)
    await Promise.all(referencesIn(facts.claims).map((one) => references(one).ready(this.#parts)))
    return new ExportView({ index, provider, facts, now, directory, references })
  }

  /** The logical cluster whose RBAC bounds what users of this one do with a bound resource; undefined: none does. */
  policyOf(objects: ClusterObjects, name: string): LogicalCluster | undefined {
    for (const entry of objects.list({ resource: bindingKey })) {
      const bound = boundRevision(entry)
      if (bound?.resources.includes(name) !== true) continue
      const facts = this.#parts.index.exportByUid(bound.exportUid)
      const id = facts?.hasPolicy === true ? tryClusterId(facts.cluster) : undefined
      return id === undefined ? undefined : this.#parts.directory.byId(id)
    }
    return undefined
  }

  #referenceIndex({ uid }: ExportFacts, reference: ClaimReference): ReferenceIndex {
    const { group = '', resource, namePath, namespacePath } = reference
    const key = JSON.stringify([uid, group, resource, namePath, namespacePath])
    const known = this.#indexes.get(key) ?? new ReferenceIndex(uid, reference)
    this.#indexes.set(key, known)
    return known
  }

  /** The definition of a resource that the export offers, or that it claims from another export. */
  async definitionFor(exportUid: string, name: string, signal: AbortSignal): Promise<SharedDefinition | undefined> {
    const { definitions } = await this.resourcesOf(exportUid, signal)
    return definitions.find(({ compiled }) => compiled.name === name)
  }

  async resourcesOf(exportUid: string, signal: AbortSignal): Promise<ViewResources> {
    const { index } = this.#parts
    const facts = index.exportByUid(exportUid)
    const definitions = facts === undefined ? [] : await this.#definitionsOf(facts, signal)
    const builtIn: ResourceInfo[] = []
    const own: string[] = []
    const bindingDefinition = systemDefinition(bindingResource)
    for (const claim of claimsIn(facts?.claims ?? '')) {
      const { identityHash = '' } = claim
      if (identityHash === '')
        for (const resource of resourcesOf(claim)) {
          const versions = builtInVersions(resource)
          builtIn.push(...versions)
          if (versions.length === 0) own.push(groupResourceText(resource))
        }
      else definitions.push(...(await this.#claimed(identityHash, claim.resource, signal)))
    }
    const all = bindingDefinition === undefined ? definitions : [...definitions, bindingDefinition]
    return { definitions: all, builtIn, own }
  }

  async #claimed(identityHash: string, resource: string, signal: AbortSignal): Promise<SharedDefinition[]> {
    const facts = this.#parts.index.exportByIdentity(identityHash)
    const all = facts === undefined ? [] : await this.#definitionsOf(facts, signal)
    return all.filter(({ compiled }) => compiled.name.startsWith(`${resource}.`))
  }

  async #definitionsOf({ cluster, uid, revision }: ExportFacts, signal: AbortSignal): Promise<SharedDefinition[]> {
    const id = tryClusterId(cluster)
    const clusterName = id === undefined ? undefined : this.#parts.directory.byId(id)?.name
    if (clusterName === undefined || revision === 0) return []
    const found = await this.#parts.bindings.definitionsOf({ clusterName, exportUid: uid, revision }, signal)
    return [...(found?.values() ?? [])].map(({ compiled, read }) => ({ compiled, read, isTerminating: false }))
  }
}

function builtInVersions({ group, resource }: Pick<GroupVersionResource, 'group' | 'resource'>): ResourceInfo[] {
  return builtInResources().filter((info) => info.group === group && info.resource === resource)
}
