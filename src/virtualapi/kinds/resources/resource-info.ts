// A row of the resource table: the names and verbs of a resource, for built-in kinds and CRDs alike.

/** A subresource such as status or scale. */
export interface SubresourceInfo {
  readonly name: string
  /**
   * Group, version and kind of the objects that the subresource reads and writes; they may differ from the parent's.
   */
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly verbs: readonly string[]
}

/** A resource version as discovery describes it. */
export interface ResourceInfo {
  readonly group: string
  readonly version: string
  /** Plural path word. */
  readonly resource: string
  readonly singular: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
  readonly categories: readonly string[]
  readonly subresources: readonly SubresourceInfo[]
  readonly storageVersionHash?: string
  readonly builtIn: boolean
}
