// A row of the resource table: what a resource is called and which verbs it has, for built-in kinds and CRDs alike.

export interface SubresourceInfo {
  readonly name: string
  /** Kind of what the subresource reads and writes; its group and version where they are not the parent's. */
  readonly group: string
  readonly version: string
  readonly kind: string
  readonly verbs: readonly string[]
}

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
