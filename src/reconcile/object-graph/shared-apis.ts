// The contract between the API server and the controllers of apis.kcp.io: which APIExports there are, and which
// logical clusters have bound them. It holds a few facts of each object and not the object, also of logical clusters
// that are not in memory.

/** The facts of an APIExport. */
export interface ExportFacts {
  /** The id of its logical cluster. */
  readonly cluster: string
  readonly name: string
  /** The identity: the uid, or that of the export that this one continues. */
  readonly uid: string
  /** How many times the identity has changed its owner. */
  readonly transfers: number
  /** The newest revision; 0 before the first. */
  readonly revision: number
  /** The share of its consumers, in percent, that may have the newest revision. */
  readonly released: number
  /** Groups of consumers that get a revision before the others, as JSON; empty for none. */
  readonly order: string
  /** How many of the groups may have the newest revision; undefined: all. */
  readonly releasedGroups: number | undefined
  /** PLURAL.GROUP of each resource that the export offers. */
  readonly resources: readonly string[]
  /** Whether RBAC of the export's logical cluster bounds what users of consumers do (maximalPermissionPolicy). */
  readonly hasPolicy: boolean
  /** The claims of the export, as JSON: equal texts are one string in memory. */
  readonly claims: string
  /** The admission that the export brings, as JSON; empty for none. */
  readonly admission: string
}

/** The facts of an APIBinding. */
export interface BindingFacts {
  /** The id of its logical cluster. */
  readonly cluster: string
  readonly name: string
  /** The name of the export's logical cluster; undefined: the binding's own one. */
  readonly path: string | undefined
  readonly exportName: string
  /** The identity of the export; undefined before the binding is bound. */
  readonly exportUid: string | undefined
  /** The logical cluster of the export, by which the binding finds its definitions; undefined like `exportUid`. */
  readonly providerName: string | undefined
  readonly revision: number
  /** PLURAL.GROUP of each resource that the logical cluster serves by the binding. */
  readonly resources: readonly string[]
  /** The claims in force, as JSON. Equal texts are one string in memory. */
  readonly accepted: string
  readonly labels: Readonly<Record<string, string>> | undefined
  readonly isReady: boolean
  readonly isDeleting: boolean
  /** Why the binding does not get the newest revision; undefined if nothing keeps it. */
  readonly held: string | undefined
}

/** A resource of a revision, as a binding shows it. */
export interface RevisionResource {
  readonly group: string
  readonly resource: string
  readonly schemaName: string
  readonly uid: string
  readonly storageVersion: string
}

export interface SharingListener {
  /** `before`: what was known; undefined for a new export. */
  onExport(facts: ExportFacts, exists: boolean, before: ExportFacts | undefined): void
  onBinding(facts: BindingFacts, exists: boolean): void
}

export interface SharedApis {
  /** Resolves once all existing objects are known. */
  ready(): Promise<void>
  /** The id of a logical cluster; undefined if there is none of this name. */
  idOf(name: string): string | undefined
  /** The name of any logical cluster, also of those of other processes; undefined after its deletion. */
  nameOf(cluster: string): string | undefined
  /** The export that a binding refers to; undefined also for an export that another one continues. */
  exportOf(binding: Pick<BindingFacts, 'cluster' | 'path' | 'exportName'>): ExportFacts | undefined
  exportByUid(uid: string): ExportFacts | undefined
  /** The names of the exports of a logical cluster. */
  exportsOf(cluster: string): readonly string[]
  /** The bindings of an export. */
  bindingsOf(exportUid: string): Iterable<BindingFacts>
  /** The bindings that refer to an export, by the name of its logical cluster and its own name. */
  bindingsTo(clusterName: string, exportName: string): Iterable<BindingFacts>
  /** Whether a logical cluster has an APIBinding of this name. */
  hasBinding(cluster: string, name: string): boolean
  /** The bindings of a logical cluster that hold below it, too (label kcp.dev/inherit). */
  markedIn(cluster: string): readonly BindingFacts[]
  allMarked(): Iterable<BindingFacts>
  /** The id of the parent of a logical cluster; undefined if it has none. */
  parentOf(cluster: string): string | undefined
  /** The ids of the logical clusters right below one, apart from those that are being deleted. */
  childrenOf(cluster: string): readonly string[]
  /** Calls the listener for each logical cluster that gets a parent. Returns the function that ends it. */
  followChildren(listener: (child: string, parent: string) => void): () => void
  /** The resources of a revision; undefined if it does not exist any more. `clusterName`: that of the export. */
  resourcesOf(
    of: { readonly clusterName: string; readonly exportUid: string; readonly revision: number },
    signal: AbortSignal,
  ): Promise<readonly RevisionResource[] | undefined>
  /**
   * Why a revision would break stored objects of a logical cluster, a sentence per resource at most. Empty: it breaks
   * none.
   */
  objections(
    binding: Pick<BindingFacts, 'cluster' | 'exportUid' | 'revision'>,
    revision: number,
    signal: AbortSignal,
  ): Promise<readonly string[]>
  /** Resources and the number of their objects in a logical cluster. */
  countObjects(cluster: string, resources: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, number>>
  /** Calls the listener for each change. It must be quick and must not throw. Returns the function that ends it. */
  follow(listener: SharingListener): () => void
}
