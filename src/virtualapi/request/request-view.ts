// The contract of views: what a provider sees of the logical clusters that have bound an export.
import type { ClusterId, GroupResource, JsonObject } from '#apimachinery/meta/index.ts'
import type { LogicalCluster } from './logical-cluster.ts'

/** An object as far as a rule looks at it. */
export interface ViewedObject {
  readonly namespace: string
  readonly name: string
  readonly labels: Readonly<Record<string, string>> | undefined
  /** Decodes the object. */
  readonly object: () => JsonObject
}

/** What the view shows of one resource in one logical cluster. */
export interface ViewRule {
  allows(verb: string, subresource: string): boolean
  /** Whether the view shows the object. Absent: it shows all objects. */
  readonly matches?: (object: ViewedObject) => boolean
  /** Labels that every created object gets, so that the rule matches it. */
  readonly labels: Readonly<Record<string, string>>
  /** The rule as plain data, for the offload thread; absent for a rule that reads objects of other resources. */
  readonly plain?: PlainRule
}

/** A rule as plain data: of an exported resource, or the claim on a resource that both sides say, as JSON. */
export type PlainRule =
  | { readonly is: 'exported' }
  | { readonly is: 'claim'; readonly resource: string; readonly claims: string; readonly accepted: string }

export interface RequestView {
  /** The logical cluster of the export, which pays for the request. */
  readonly provider: LogicalCluster
  readonly exportUid: string
  /** The names from the top of the tree to a logical cluster, joined by colons. */
  pathOf(cluster: LogicalCluster): string
  /** The rule of a resource in a logical cluster; undefined: the view shows none of it. */
  ruleFor(cluster: ClusterId, resource: GroupResource): ViewRule | undefined
  /** Whether the export offers or claims the resource, whatever its consumers accept. */
  concerns(resource: GroupResource): boolean
  /** The logical clusters that have bound the export. */
  consumers(): Iterable<ClusterId>
  /** The revision of the newest change after which a watch cannot resume, because consumers have left. */
  lastLoss(): number
  /** The logical clusters whose binding changed after a revision. */
  changedSince(revision: number): Iterable<ClusterId>
  /**
   * Calls the listener when the rules of a logical cluster may have changed, or, with `objects`, what they say of these
   * objects (`NAMESPACE/NAME`). Returns the function that ends it.
   */
  follow(listener: (cluster: ClusterId, objects?: readonly string[]) => void): () => void
}
