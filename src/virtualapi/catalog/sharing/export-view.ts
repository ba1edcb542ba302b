// The view that the provider of an export has of its consumers: the exported resources, the objects that the consumers
// have accepted to share, and the bindings to the export. Cheap to make: each request through a view makes one.
import { groupResourceText, tryClusterId, type ClusterId, type GroupResource } from '#apimachinery/meta/index.ts'
import { apiBindings, type ClaimReference } from '#crds/index.ts'
import type { BindingFacts, ExportFacts } from '#reconcile/object-graph/index.ts'
import { pathOf } from '#virtualapi/request/hierarchy.ts'
import { isBuiltInGroup } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { RequestView, ViewedObject, ViewRule } from '#virtualapi/request/request-view.ts'
import { claimsIn, exportedRule, referencesIn, resourcesOf, rulesOf, type ConsumerRule } from './claims.ts'
import type { ReferenceIndex } from './reference-index.ts'
import type { SharingIndex } from './sharing-index.ts'

const readVerbs = new Set(['get', 'list', 'watch'])
const bindingsText = groupResourceText(apiBindings)

/** True for PLURAL.GROUP in a group of Kubernetes itself. */
function isBuiltIn(name: string): boolean {
  const dot = name.indexOf('.')
  return isBuiltInGroup(dot < 0 ? '' : name.slice(dot + 1))
}

export interface ViewParts {
  readonly index: SharingIndex
  readonly provider: LogicalCluster
  readonly facts: ExportFacts
  readonly directory: Pick<ClusterDirectory, 'byName'>
  /** The index of a reference, which is filled. */
  readonly references: (reference: ClaimReference) => ReferenceIndex
  /** Milliseconds since the epoch. */
  readonly now: number
}

export class ExportView implements RequestView {
  readonly provider: LogicalCluster
  readonly exportUid: string
  readonly #index: SharingIndex
  readonly #facts: ExportFacts
  readonly #now: number
  readonly #references: ViewParts['references']
  readonly #directory: Pick<ClusterDirectory, 'byName'>
  readonly #bindings: ViewRule
  readonly #rules = new Map<string, ViewRule | undefined>()

  constructor({ index, provider, facts, now, directory, references }: ViewParts) {
    this.#references = references
    this.#directory = directory
    this.provider = provider
    this.exportUid = facts.uid
    this.#index = index
    this.#facts = facts
    this.#now = now
    this.#bindings = { allows: (verb, subresource) => readVerbs.has(verb) && subresource === '', labels: {} }
  }

  pathOf(cluster: LogicalCluster): string {
    return pathOf(cluster, this.#directory)
  }

  ruleFor(cluster: ClusterId, resource: GroupResource): ViewRule | undefined {
    const name = groupResourceText(resource)
    const key = `${cluster}/${name}`
    if (this.#rules.has(key)) return this.#rules.get(key)
    const rule = this.#findRule(cluster, name)
    this.#rules.set(key, rule)
    return rule
  }

  /** False once the export is deleted or belongs to another logical cluster. */
  #isInForce(): boolean {
    const current = this.#index.exportByUid(this.exportUid)
    return current?.cluster === this.#facts.cluster && current.name === this.#facts.name
  }

  #findRule(cluster: ClusterId, name: string): ViewRule | undefined {
    if (!this.#isInForce()) return undefined
    const bindings = this.#index.bindingsIn(cluster, this.exportUid)
    if (bindings.length === 0) return undefined
    if (bindings.some(({ resources }) => resources.includes(name))) return exportedRule
    for (const { accepted } of bindings) {
      const rule = rulesOf(this.#facts.claims, accepted).get(name)
      if (rule === undefined || rule.expiresMs <= this.#now || !this.#isOf(cluster, name, rule)) continue
      // Through a view nobody accepts claims: a provider could accept its own.
      if (name === bindingsText) return this.#bindings
      if (rule.references.length > 0) return this.#withReferences(cluster, rule)
      return { ...rule, plain: { is: 'claim', resource: name, claims: this.#facts.claims, accepted } }
    }
    return name === bindingsText ? this.#bindingRule(cluster) : undefined
  }

  /**
   * Whether the resource is what the claim means: one of the export with this identity, or one that no export gives to
   * the consumer. The name alone would also cover objects of another provider.
   */
  #isOf(cluster: ClusterId, name: string, { identityHash }: ConsumerRule): boolean {
    if (identityHash === '') return isBuiltIn(name) || !this.#index.isBound(cluster, name)
    const facts = this.#index.exportByIdentity(identityHash)
    return facts !== undefined && this.#index.bindingsIn(cluster, facts.uid).some((one) => one.resources.includes(name))
  }

  #withReferences(cluster: ClusterId, rule: ConsumerRule): ViewRule {
    const offered = ({ group = '', resource }: ClaimReference): boolean =>
      this.#facts.resources.includes(groupResourceText({ group, resource }))
    // Only objects of the export itself name others.
    if (!rule.references.every(offered)) return { ...rule, matches: () => false }
    const indexes = rule.references.map((reference) => this.#references(reference))
    const matches = (object: ViewedObject): boolean =>
      rule.matches?.(object) !== false && indexes.every((index) => index.names(cluster, object))
    return { ...rule, matches }
  }

  /** Bindings of other exports are not shown. */
  #bindingRule(cluster: ClusterId): ViewRule {
    // The names are of now: a watch needs this rule to tell of the end of a binding.
    const names = new Set(this.#index.bindingsIn(cluster, this.exportUid).map(({ name }) => name))
    return { ...this.#bindings, matches: ({ name }: ViewedObject): boolean => names.has(name) }
  }

  concerns(resource: GroupResource): boolean {
    const name = groupResourceText(resource)
    if (name === bindingsText) return true
    if (
      claimsIn(this.#facts.claims)
        .flatMap(resourcesOf)
        .some((one) => groupResourceText(one) === name)
    )
      return true
    return this.#facts.resources.includes(name)
  }

  *consumers(): Generator<ClusterId> {
    const seen = new Set<string>()
    for (const { cluster } of this.#index.bindingsOf(this.exportUid)) {
      const id = tryClusterId(cluster)
      if (id === undefined || seen.has(cluster)) continue
      seen.add(cluster)
      yield id
    }
  }

  lastLoss(): number {
    return this.#index.lastLoss(this.exportUid)
  }

  *changedSince(revision: number): Generator<ClusterId> {
    for (const facts of this.#index.bindingsOf(this.exportUid)) {
      const id = tryClusterId(facts.cluster)
      if (id !== undefined && this.#index.revisionOf(facts) > revision) yield id
    }
  }

  follow(listener: (cluster: ClusterId, objects?: readonly string[]) => void): () => void {
    const stops = referencesIn(this.#facts.claims).map((reference) => this.#references(reference).follow(listener))
    stops.push(this.#followBindings(listener))
    return () => {
      for (const stop of stops) stop()
    }
  }

  #followBindings(listener: (cluster: ClusterId) => void): () => void {
    const tell = (facts: BindingFacts): void => {
      const id = tryClusterId(facts.cluster)
      if (id === undefined) return
      for (const key of this.#rules.keys()) if (key.startsWith(`${id}/`)) this.#rules.delete(key)
      listener(id)
    }
    const before = new Map<string, BindingFacts>()
    return this.#index.follow({
      onExport: ({ uid }) => {
        if (uid === this.exportUid && !this.#isInForce()) for (const facts of this.#index.bindingsOf(uid)) tell(facts)
      },
      onBinding: (facts, exists) => {
        const key = `${facts.cluster}/${facts.name}`
        const was = before.get(key)
        const isOurs = facts.exportUid === this.exportUid
        if (!isOurs && was === undefined) {
          // A claim may mean this resource, or no longer mean it.
          if (facts.resources.some((name) => this.#rules.has(`${facts.cluster}/${name}`))) tell(facts)
          return
        }
        if (exists && isOurs) before.set(key, facts)
        else before.delete(key)
        if (exists && was?.accepted === facts.accepted && was.resources === facts.resources) return
        tell(facts)
      },
    })
  }
}
