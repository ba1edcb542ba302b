// The words in which the scheduler, the syncers of members and the API server speak to one another: annotations, labels
// and finalizers on ordinary objects. They meet through the API only, so this file is all they share.
import { createHash } from 'node:crypto'
import { isJsonObject, type ClusterId, type KubeObject } from '../apimachinery/meta/index.ts'

/** Tenant's: where an object, or all objects of a namespace, should run: `east` or `east,west`; `none` or empty: nowhere. */
export const clustersAnnotation = 'kcp.dev/clusters'
/** Scheduler's: the decision, JSON of PlacedOn. */
export const placedOnAnnotation = 'kcp.dev/placed-on'
/** Syncer's, upstream, on what a member made: the member's name. */
export const memberAnnotation = 'kcp.dev/member'
/** Syncer's, upstream, on a copy whose server gave it another uid than the member did. */
export const memberUidAnnotation = 'kcp.dev/member-uid'
/** Syncer's, upstream, on EndpointSlices of members whose pods can be reached from other members. */
export const reachableAnnotation = 'kcp.dev/reachable'
/** Syncer's, downstream: whose copy this is, JSON of Locator. */
export const locatorAnnotation = 'kcp.dev/locator'
/** Syncer's, downstream: on everything of ours and on all that members make from it. */
export const managedLabel = 'kcp.dev/managed'
/** Syncer's, downstream, on pods: `true` while they take traffic; Services select on it, ReplicaSets do not. */
export const servingLabel = 'kcp.dev/serving'
/** The field manager of everything a syncer applies. */
export const syncerFieldManager = 'kcp-syncer'
/** Namespace of our own parts: in a member, and beside MemberCluster objects for their Secrets. */
export const systemNamespace = 'kcp-system'
/** In a host's systemNamespace: the Secret with the keys of the installation. */
export const installationKeysName = 'kcp-keys'
/** In a member's systemNamespace: the nameserver with its identity, and the syncer's identity with its token. */
export const memberParts = {
  nameserver: 'kcp-dns',
  syncerAccount: 'kcp-syncer',
  tokenSecret: 'kcp-syncer-token',
} as const

/** Scheduler's: why a workload that should run somewhere has no place; gone when it has one. */
export const heldAnnotation = 'kcp.dev/held'

const ownAnnotations: ReadonlySet<string> = new Set([
  placedOnAnnotation,
  memberAnnotation,
  memberUidAnnotation,
  reachableAnnotation,
  heldAnnotation,
])

/** True for annotations in which the installation tells tenants what it decided: they read them, only we write them. */
export function isOwnAnnotation(name: string): boolean {
  return ownAnnotations.has(name) || name.startsWith(pieceAnnotationPrefix)
}

/** Annotation upstream that holds what one member says of its copy: JSON of a piece. */
export function pieceAnnotation(member: string): string {
  return `status.kcp.dev/${member}`
}
export const pieceAnnotationPrefix = 'status.kcp.dev/'

/** Finalizer upstream: kept until nothing of the object is left in the member. */
export function syncerFinalizer(member: string): string {
  return `syncer.kcp.dev/${member}`
}

/** States of one copy, in the order of a life; Held is the side state of a copy that may not come to be. */
export const copyStates = [
  'Assumed',
  'Syncing',
  'Applied',
  'Available',
  'Serving',
  'Draining',
  'Terminating',
  'Held',
] as const
export type CopyState = (typeof copyStates)[number]

export interface PlacedCopy {
  readonly state: CopyState
  /** RFC 3339: when this state was entered. */
  readonly since?: string
  readonly reason?: string
  readonly message?: string
}
/** By member name. A member that is not named has no copy and gets none. */
export type PlacedOn = Readonly<Record<string, PlacedCopy>>

/** The decision as written on the object; empty where there is none. */
export function placedOn(object: KubeObject): PlacedOn {
  const value = parseAnnotation(object, placedOnAnnotation)
  const found: Record<string, PlacedCopy> = {}
  for (const [member, copy] of Object.entries(value)) {
    if (isJsonObject(copy) && copyStates.includes(copy['state'] as CopyState))
      found[member] = copy as unknown as PlacedCopy
  }
  return found
}

/** True where a copy is to exist in the member. */
export function hasCopy(copy: PlacedCopy | undefined): boolean {
  return copy !== undefined && !['Assumed', 'Terminating', 'Held'].includes(copy.state)
}

/** Whose copy a downstream object is. `uid` is the upstream object's, `clusterId` its logical cluster's. */
export interface Locator {
  readonly cluster: string
  readonly clusterId: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** The locator of a downstream object; undefined where it is not ours. */
export function tryLocator(object: KubeObject): Locator | undefined {
  const value = parseAnnotation(object, locatorAnnotation)
  for (const field of ['cluster', 'clusterId', 'namespace', 'name', 'uid']) {
    if (typeof value[field] !== 'string') return undefined
  }
  return value as unknown as Locator
}

/** A JSON object kept in an annotation; empty where there is none or it does not parse. */
export function parseAnnotation(object: KubeObject, annotation: string): Record<string, unknown> {
  const text = object.metadata.annotations?.[annotation]
  if (text === undefined) return {}
  try {
    const value: unknown = JSON.parse(text)
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** All pieces on an upstream object, by member. */
export function piecesOf<T>(object: KubeObject): Record<string, T> {
  const pieces: Record<string, T> = {}
  for (const annotation of Object.keys(object.metadata.annotations ?? {})) {
    if (!annotation.startsWith(pieceAnnotationPrefix)) continue
    pieces[annotation.slice(pieceAnnotationPrefix.length)] = parseAnnotation(object, annotation) as T
  }
  return pieces
}

/** What a member says of its copy of a Deployment. */
export interface DeploymentPiece {
  /** Content hash of the upstream spec that the member's controller has acted on. */
  readonly observed?: string
  readonly replicas?: number
  readonly updatedReplicas?: number
  readonly readyReplicas?: number
  readonly availableReplicas?: number
  readonly unavailableReplicas?: number
  readonly conditions?: readonly PieceCondition[]
  /** Why it can't be synced: the member's own words. */
  readonly error?: string
}
export interface PieceCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
  readonly lastUpdateTime?: string
}

/** What a member says of its copy of a Service: how many ready endpoints it knows, by the member they run in. */
export interface ServicePiece {
  readonly endpoints?: Readonly<Record<string, number>>
  readonly error?: string
}

/** The namespace in a member of a namespace of a logical cluster. */
export function downstreamNamespace(id: ClusterId, namespace: string): string {
  return `${id}-${namespace}`
}

/** Longest name of a namespace that can be placed: a downstream one has at most 63 characters. */
export const maxPlacedNamespaceLength = 63 - 11

/**
 * Short id of a member, from the uid of its kube-system: 50 bits of SHA-256 in base32, as ids of logical clusters are
 * made. It is the second half of the audience `ID.MEMBERID` of tokens that pods in this member use.
 */
export function memberIdOf(kubeSystemUid: string): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz234567'
  const digest = createHash('sha256').update(`kcp.dev/membercluster/${kubeSystemUid}`).digest()
  let id = letters[(digest[0] ?? 0) % 26] ?? 'a'
  for (let i = 1; i < 10; i++) id += letters[(digest[i] ?? 0) & 31] ?? 'a'
  return id
}
