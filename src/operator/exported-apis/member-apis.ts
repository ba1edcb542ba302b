// The knowledge that the controllers of this process share about APIs that members export: the definitions that syncers
// have read in members, the objects of exported kinds, and the reports for the MemberClusters.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  clusterInKey,
  createInformer,
  namespaceKeyOf,
  ObjectIndex,
  withoutManagedFields,
  type Informer,
} from '#client/index.ts'
import {
  definitionName,
  exportedFromLabel,
  placedOn,
  type ApiReport,
  type ExportedApi,
  type ExportedObjects,
  type ExportReport,
  type SeenDefinition,
} from '#crds/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'

export const definitionsGvr = {
  group: 'apiextensions.k8s.io',
  version: 'v1',
  resource: 'customresourcedefinitions',
} as const
const backoff = { firstMs: 100, maxMs: 5000 }
/** Problems of one member that are told. */
const maxProblems = 5

/** The objects of one exported kind in all logical clusters, as they are stored. */
export interface ImportedObjects extends ExportedObjects {
  readonly api: Readonly<ExportedApi>
  readonly informer: Informer<KubeObject>
  readonly groups: ObjectIndex
  /** By name of a member: the objects that have, or are to have, something there. */
  readonly byMember: ObjectIndex
}

type Listener = (name: string, member: string) => void

/** Lives as long as the process; what it opens ends with the signal of the operator. */
export class MemberApis {
  readonly #seen = new Map<string, Map<string, SeenDefinition>>()
  readonly #withdrawn = new Map<string, readonly string[]>()
  readonly #reports = new Map<string, readonly ApiReport[]>()
  readonly #problems = new Map<string, readonly string[]>()
  readonly #objects = new Map<string, ImportedObjects>()
  readonly #definitionListeners = new Set<Listener>()
  readonly #reportListeners = new Set<(member: string) => void>()
  readonly #shownListeners = new Set<(key: string) => void>()
  readonly #objectListeners = new Set<(objects: ImportedObjects) => void>()
  #definitions: Informer<KubeObject> | undefined

  /** Takes the definition that a member has now. The last one stays known while the member does not answer. */
  seen(member: string, name: string, definition: SeenDefinition): void {
    const known = this.#seen.get(member) ?? new Map<string, SeenDefinition>()
    const before = known.get(name)
    if (before !== undefined && JSON.stringify(before) === JSON.stringify(definition)) return
    this.#seen.set(member, known.set(name, definition))
    for (const listener of this.#definitionListeners) listener(name, member)
  }

  /** The definition of a member; undefined: not known yet. */
  definitionOf(member: string, name: string): SeenDefinition | undefined {
    return this.#seen.get(member)?.get(name)
  }

  withdrawn(member: string, names: readonly string[]): void {
    this.#withdrawn.set(member, names)
    this.#changed(member)
  }

  /** Takes what is to be told about the APIs of a member. */
  report(member: string, apis: readonly ApiReport[], problems: readonly string[]): void {
    const before = JSON.stringify([this.#reports.get(member), this.#problems.get(member)])
    if (before === JSON.stringify([apis, problems])) return
    this.#reports.set(member, apis)
    this.#problems.set(member, problems)
    this.#changed(member)
  }

  /** Undefined until something is known. */
  reportOf(member: string): ExportReport | undefined {
    const [apis, withdrawn] = [this.#reports.get(member), this.#withdrawn.get(member)]
    if (apis === undefined && withdrawn === undefined) return undefined
    const problems = (this.#problems.get(member) ?? []).slice(0, maxProblems)
    return { problems, withdrawn: withdrawn ?? [], apis: apis ?? [] }
  }

  forget(member: string): void {
    const names = [...(this.#seen.get(member)?.keys() ?? [])]
    for (const map of [this.#seen, this.#withdrawn, this.#reports, this.#problems]) map.delete(member)
    for (const name of names) for (const listener of this.#definitionListeners) listener(name, member)
  }

  /** Calls the listener with the name of a definition that a member has changed, and with the member. */
  onDefinition(listener: Listener): () => void {
    this.#definitionListeners.add(listener)
    return () => void this.#definitionListeners.delete(listener)
  }

  /** Calls the listener with a member whose report has changed. */
  onReport(listener: (member: string) => void): () => void {
    this.#reportListeners.add(listener)
    return () => void this.#reportListeners.delete(listener)
  }

  /** The definitions in logical clusters that come from members; followed from the first call on. */
  definitions({ virtual, log }: OperatorContext, signal: AbortSignal): Informer<KubeObject> {
    if (this.#definitions !== undefined) return this.#definitions
    this.#definitions = createInformer<KubeObject>({
      client: virtual('/clusters/*'),
      gvr: definitionsGvr,
      labelSelector: exportedFromLabel,
      allClusters: true,
      storedOnly: true,
      transform: withoutManagedFields,
      backoff,
      log,
      signal,
    })
    this.#definitions.onChange(({ key }) => {
      for (const listener of this.#shownListeners) listener(key)
    })
    return this.#definitions
  }

  /** Calls the listener with the key of a definition that has changed in a logical cluster, once they are followed. */
  onShown(listener: (key: string) => void): () => void {
    this.#shownListeners.add(listener)
    return () => void this.#shownListeners.delete(listener)
  }

  /** The objects in a member of the APIs that are `wanted`, as `NAMESPACE/NAME`. */
  placedIn(member: string, wanted: (api: Readonly<ExportedApi>) => boolean): string[] {
    return [...this.#objects.values()]
      .filter(({ api }) => wanted(api))
      .flatMap(({ byMember }) => [...byMember.of(member)])
      .map(({ metadata: { namespace = '', name = '' } }) => `${namespace}/${name}`)
  }

  /** The objects of an API; opened at the first call. Lists over all logical clusters do not depend on the version. */
  objectsOf(api: Readonly<ExportedApi>, { virtual, log }: OperatorContext, signal: AbortSignal): ImportedObjects {
    const name = definitionName(api)
    const known = this.#objects.get(name)
    if (known !== undefined) return known
    const informer = createInformer<KubeObject>({
      client: virtual('/clusters/*'),
      gvr: { group: api.group, version: 'v1', resource: api.resource },
      allClusters: true,
      storedOnly: true,
      transform: withoutManagedFields,
      backoff,
      log,
      signal,
    })
    const groups = new ObjectIndex(informer, (key) => [namespaceKeyOf(key), clusterInKey(key)])
    const byMember = new ObjectIndex(informer, (_, object) => Object.keys(placedOn(object as KubeObject)))
    const opened = { api: { group: api.group, resource: api.resource }, informer, groups, byMember }
    this.#objects.set(name, opened)
    for (const listener of this.#objectListeners) listener(opened)
    return opened
  }

  openedObjects(): Iterable<ImportedObjects> {
    return this.#objects.values()
  }

  /** Calls the listener with all kinds whose objects are opened, now and later. */
  onObjects(listener: (objects: ImportedObjects) => void): () => void {
    this.#objectListeners.add(listener)
    for (const objects of this.#objects.values()) listener(objects)
    return () => void this.#objectListeners.delete(listener)
  }

  #changed(member: string): void {
    for (const listener of this.#reportListeners) listener(member)
  }
}
