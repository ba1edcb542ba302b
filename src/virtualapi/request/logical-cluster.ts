// The directory of logical clusters: name, id, and the facts that the server needs to answer a request for each.
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import type { PodSecurityLevel } from '#apimachinery/pod-security/index.ts'
import type { ClusterAudit, JwtIssuer, TransferNote } from '#crds/index.ts'

/** An RBAC Subject of the host, as in spec.owners. */
export interface OwnerSubject {
  readonly kind: 'User' | 'Group' | 'ServiceAccount'
  readonly name: string
  readonly namespace?: string
}

/** Bounds of a subtree; storage in bytes. */
export interface SubtreeLimits {
  readonly storage?: number
  readonly objects?: number
  readonly children?: number
  readonly depth?: number
  readonly crds?: number
  readonly watches?: number
  readonly requestsPerSecond?: number
  /** Thousandths of a CPU. */
  readonly cpu?: number
  /** Bytes. */
  readonly memory?: number
  readonly pods?: number
}

/** What the server has to know of the sleep of a logical cluster. */
export interface SleepRules {
  /** How exactly the time of the last request is told, milliseconds; absent: it is not told while it is awake. */
  readonly stepMs?: number
  /** RFC 3339; absent while it is awake, and while its admins hold it asleep. */
  readonly asleepSince?: string
  /** It sleeps because nobody used it. */
  readonly isIdle?: true
  /** Requests of ServiceAccounts count. */
  readonly countsAccounts?: true
  readonly ignoreUsers?: readonly string[]
  readonly ignoreGroups?: readonly string[]
}

export interface Inheritance {
  readonly exclude?: readonly string[]
  readonly allowExclusions?: readonly string[]
}

/** A logical cluster as the server sees it. Immutable; replaced on change. */
export interface LogicalCluster {
  readonly name: ClusterName
  readonly id: ClusterId
  /** uid of the LogicalCluster object. */
  readonly uid: string
  /** The creation time, RFC 3339; also the creationTimestamp of the logical cluster's bootstrap objects. */
  readonly creationTimestamp: string
  readonly owners: readonly OwnerSubject[]
  /** Labels of the LogicalCluster object and of its ancestors, which rules of admins select; absent if there are none. */
  readonly labels?: Readonly<Record<string, string>>
  /** True while the logical cluster is being deleted: it is still served, but tenants cannot create objects. */
  readonly deleting: boolean
  /** What it still waits for before its users may see it, because objects of another one are put into it; absent: nothing. */
  readonly filling?: string
  /** Its move to or from another installation; absent: there is none, and there was none. */
  readonly transfer?: TransferNote
  /** The level of the Pod Security Standards that pods must keep. Default baseline. */
  readonly podSecurity?: PodSecurityLevel
  /** Name of the parent (spec.parentRef), whether it exists or not; absent: it has none. */
  readonly parent?: ClusterName
  /** Bounds of the logical cluster and all below it; absent: there are none. */
  readonly limits?: SubtreeLimits
  /** When it sleeps; absent: never. */
  readonly sleep?: SleepRules
  /** Exceptions from what is inherited; absent: there are none. */
  readonly inherit?: Inheritance
  /** The ServiceAccount as which others may use it with tokens for this use; absent: nobody may. */
  readonly access?: { readonly namespace: string; readonly name: string }
  /** Issuers of tokens that it trusts besides those of the installation (spec.authentication.jwt); absent: none. */
  readonly authentication?: readonly JwtIssuer[]
  /** Its audit log; absent: it has none of its own. */
  readonly audit?: ClusterAudit
  /**
   * True for a plain cluster, whose pods run in itself, such as a simulated member: kcp's annotations and finalizers are
   * ordinary fields there.
   */
  readonly isPlain?: true
}

export interface ClusterDirectory {
  byName(name: ClusterName): LogicalCluster | undefined
  byId(id: ClusterId): LogicalCluster | undefined
  all(): Iterable<LogicalCluster>
  /** The logical clusters whose parent has this name. */
  childrenOf(name: ClusterName): Iterable<LogicalCluster>
  /**
   * Calls the listener after a logical cluster is added, changed or deleted. Returns the function that unsubscribes.
   */
  onChange(listener: (change: { before?: LogicalCluster; after?: LogicalCluster }) => void): () => void
}
