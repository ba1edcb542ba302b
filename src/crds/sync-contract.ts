// The annotations, labels, finalizers and headers by which the scheduler, the syncers of members and the API server
// communicate. They meet through the API only, so everything they agree on is in this file.
import { apiBindingFinalizer } from './shared-apis.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { createHash } from 'node:crypto'
import { isJsonObject, tryClusterId, type ClusterId, type KubeObject } from '#apimachinery/meta/index.ts'
import { remember } from '#apimachinery/memo/index.ts'
import { contentHash, unchangingHash } from './content-hash.ts'

// --- Upstream: on objects of a logical cluster. ---

/** Written by tenants, on objects and namespaces: member names such as `east,west`; `none` or empty means no member. */
export const clustersAnnotation = 'kcp.dev/clusters'
/** Written by tenants, on objects and namespaces: `never` keeps workloads from being moved for balance. */
export const rebalanceAnnotation = 'kcp.dev/rebalance'
/** Written by the scheduler: its decision, JSON of PlacedOn. */
export const placedOnAnnotation = 'kcp.dev/placed-on'
/** Written by the scheduler: why a workload is not placed, or not everywhere it should be. Absent otherwise. */
export const heldAnnotation = 'kcp.dev/held'
/** Written by the scheduler: the last moves of a workload, JSON of PlacementHistory. */
export const historyAnnotation = 'kcp.dev/placement-history'
/**
 * Written by the API server when the ServiceAccount of a workload's pods changes: JSON with the time by which the pods
 * of each former ServiceAccount must be gone. Until then their tokens are accepted.
 */
export const formerAccountsAnnotation = 'kcp.dev/former-service-accounts'
/** Written by a syncer on objects that a member created, such as pods: the name of the member. */
export const memberAnnotation = 'kcp.dev/member'
/** Written by a syncer if the server did not keep the uid of the member's object: that uid. */
export const memberUidAnnotation = 'kcp.dev/member-uid'
/** Written by a syncer on a tenant's PersistentVolumeClaim before its volume is created: the member with the data. */
export const volumeAnnotation = 'kcp.dev/volume-in'
/**
 * Written by the operator on a claim whose data was moved: the name of its PersistentVolume in the member of
 * volumeAnnotation.
 */
export const movedVolumeAnnotation = 'kcp.dev/moved-volume'
/**
 * Written by the operator on a claim from the last copy of its data to its arrival in another member, JSON of
 * VolumeLock: meanwhile no member may start pods that use the claim.
 */
export const volumeLockAnnotation = 'kcp.dev/volume-lock'
/** The value of volumeLockAnnotation. */
export interface VolumeLock {
  /** The name of the VolumeMove. */
  readonly move: string
  /** The member to which the data goes. */
  readonly to: string
}
/**
 * Written by tenants, on claims: the member to which the data may move, where a Placement asks for consent. After the
 * loss of a member `MEMBER@TIME`: the claim may go on there with the copy of that time.
 */
export const volumeConsentAnnotation = 'kcp.dev/volume-consent'
/** The value of volumeConsentAnnotation on a claim that may begin empty, instead of from a snapshot that is not there. */
export const emptyVolumeConsent = 'empty'
/**
 * Written by a restore on a claim that gets its volume from a snapshot, with volumeAnnotation, until it has the volume;
 * JSON of VolumeSource. Until then no member makes the claim, or pods that use it.
 */
export const volumeSourceAnnotation = 'kcp.dev/volume-source'
/** The value of volumeSourceAnnotation: a record in the host, which has the handle. */
export interface VolumeSource {
  /** The name and the uid of the LogicalClusterSnapshot. */
  readonly snapshot: string
  readonly uid: string
  /** uid of the claim that the snapshot was taken of. */
  readonly claimUid: string
}
/** The source of the claim's volume; undefined if it has none, or does not wait for it any more. */
export function volumeSourceOf(claim: {
  readonly metadata: { readonly annotations?: Readonly<Record<string, string>> }
}): VolumeSource | undefined {
  const text = claim.metadata.annotations?.[volumeSourceAnnotation]
  if (text === undefined) return undefined
  const { snapshot, uid, claimUid } = parseAnnotation(claim, volumeSourceAnnotation)
  const isWhole = typeof snapshot === 'string' && typeof uid === 'string' && typeof claimUid === 'string'
  return isWhole ? { snapshot, uid, claimUid } : { snapshot: '', uid: '', claimUid: '' }
}
/** Written by a syncer on EndpointSlices whose pods can be reached from other members: the value of reachabilityOf. */
export const reachableAnnotation = 'kcp.dev/reachable'
/** Written by the operator on EndpointSlices of a member that is lost: it has made their endpoints not ready. */
export const memberLostAnnotation = 'kcp.dev/member-lost'
/**
 * Written by the operator on classes that it shows in a logical cluster: the members that have them, such as
 * `east,west`.
 */
export const projectedAnnotation = 'kcp.dev/projected-from'
/**
 * Label, written by the operator on CustomResourceDefinitions that members export to a logical cluster: the name of the
 * first of the members.
 */
export const exportedFromLabel = 'kcp.dev/exported-from'
/** Written by the operator on these: the members that may take objects, such as `east,west`. */
export const exportedByAnnotation = 'kcp.dev/exported-by'
/** Written by the operator on these: the fields that some members do not have, JSON of DroppedField[]. */
export const droppedFieldsAnnotation = 'kcp.dev/dropped-fields'
/** Written by the operator on these: why a change of the definition in a member is held. Absent otherwise. */
export const heldChangeAnnotation = 'kcp.dev/held-change'
/** Written by syncers on ReplicaSets: the content hash of the pod template in the Deployment. */
export const templateAnnotation = 'kcp.dev/template'
/**
 * Written by a syncer on Secrets and ConfigMaps that a member made for a custom resource: the name of its definition and
 * its own, such as `databases.example.com orders`.
 */
export const relatedToAnnotation = 'kcp.dev/related-to'
/** Written by the operator on a namespace that runs in a member under a name of its own: JSON of AdoptedNamespace. */
export const adoptedNamespaceAnnotation = 'kcp.dev/adopted-namespace'
/** Written by the operator on objects that it has made of running objects of a member: JSON of AdoptedObject. */
export const adoptedAnnotation = 'kcp.dev/adopted'
/** Written by a syncer on pods whose namespace has a name of its own in the member: that name. */
export const memberNamespaceAnnotation = 'kcp.dev/member-namespace'
/** Header of a create request: keep uid and status of the object. The server accepts it from the installation only. */
export const keepUidHeader = 'kcp-keep-uid'

export const memberStatusAnnotationPrefix = 'status.kcp.dev/'
/** The annotation with the report of one member on its copy: JSON, such as MemberStatus. */
export function memberStatusAnnotation(member: string): string {
  return `${memberStatusAnnotationPrefix}${member}`
}

export const syncerFinalizerPrefix = 'syncer.kcp.dev/'
/** Finalizer that stays on a workload until the member has nothing of it. */
export function syncerFinalizer(member: string): string {
  return `${syncerFinalizerPrefix}${member}`
}

/** The members whose finalizer is on the object: they have, or may have, a copy. */
export function finalizingMembers(object: {
  readonly metadata: { readonly finalizers?: readonly string[] }
}): string[] {
  return (object.metadata.finalizers ?? [])
    .filter((finalizer) => finalizer.startsWith(syncerFinalizerPrefix))
    .map((finalizer) => finalizer.slice(syncerFinalizerPrefix.length))
}

const ownAnnotations: ReadonlySet<string> = new Set([
  placedOnAnnotation,
  memberAnnotation,
  memberUidAnnotation,
  volumeAnnotation,
  movedVolumeAnnotation,
  volumeLockAnnotation,
  volumeSourceAnnotation,
  reachableAnnotation,
  memberLostAnnotation,
  heldAnnotation,
  historyAnnotation,
  formerAccountsAnnotation,
  templateAnnotation,
  projectedAnnotation,
  exportedByAnnotation,
  droppedFieldsAnnotation,
  heldChangeAnnotation,
  relatedToAnnotation,
  adoptedNamespaceAnnotation,
  adoptedAnnotation,
  memberNamespaceAnnotation,
])

/** True for annotations that tenants can read and only the installation can write. */
export function isOwnAnnotation(name: string): boolean {
  if (name.startsWith(keptAnnotationPrefix)) return true
  return ownAnnotations.has(name) || downstreamAnnotations.has(name) || name.startsWith(memberStatusAnnotationPrefix)
}

/** True for labels that only the installation can write. */
export function isOwnLabel(name: string): boolean {
  return name === managedLabel || name === servingLabel || name === exportedFromLabel
}

/** True for finalizers that only the installation can add and remove. */
export function isOwnFinalizer(finalizer: string): boolean {
  return finalizer.startsWith(syncerFinalizerPrefix) || finalizer === apiBindingFinalizer
}

// --- Downstream: on objects in a member. ---

/** JSON of Locator: the upstream object that this is a copy of. */
export const locatorAnnotation = 'kcp.dev/locator'
/** On everything a syncer creates and on everything the member creates from it. */
export const managedLabel = 'kcp.dev/managed'
/**
 * True for a Service without an address of its own that publishes pods which are not ready: its clients ask it for the
 * names of pods, which they need as long as the pods run. Requests to it are not spread over pods that take requests.
 */
export function isForNames(service: Readonly<Record<string, unknown>>): boolean {
  const { clusterIP, publishNotReadyAddresses } = (service['spec'] ?? {}) as {
    clusterIP?: string
    publishNotReadyAddresses?: boolean
  }
  return clusterIP === 'None' && publishNotReadyAddresses === true
}
/** Finalizer on copies of workloads that are being deleted and that finalizers of others hold upstream. */
export const upstreamFinalizer = 'kcp.dev/upstream'
/** On pods: `true` while they take traffic. Services select on it, ReplicaSets do not. */
export const servingLabel = 'kcp.dev/serving'
/** On copies: the content hash of what the syncer applied, so that fields it no longer sets are removed. */
export const appliedAnnotation = 'kcp.dev/applied'
/** On copies that server-side apply could not write: they are created and updated instead. */
export const replacedAnnotation = 'kcp.dev/replaced'
/**
 * On copies of workloads: the content hash of the upstream spec. A generation would not do: upstream it also counts
 * changes of annotations, including the syncer's own.
 */
export const sourceAnnotation = 'kcp.dev/source'
/** On pod templates and pods: what the syncer changed in them, as JSON. */
export const templateChangesAnnotation = 'kcp.dev/changes'
/** On pod templates and pods that ask for their namespace by a downward API volume: the upstream namespace. */
export const namespaceAnnotation = 'kcp.dev/namespace'
/**
 * On pod templates and pods: the beginning of the names of annotations that their volumes read, and no controller of a
 * member.
 */
export const keptAnnotationPrefix = 'kcp.dev/annotation-'
/**
 * On templates of claims and Jobs, and so on the claims and Jobs that a member makes of them: the tenant's annotations
 * that are not for members, as JSON. Upstream they are annotations again.
 */
export const withheldAnnotation = 'kcp.dev/withheld'
/** The annotations of copies. No tenant may write them upstream, where they would make an object look like a copy. */
const downstreamAnnotations: ReadonlySet<string> = new Set([
  locatorAnnotation,
  appliedAnnotation,
  replacedAnnotation,
  sourceAnnotation,
  templateChangesAnnotation,
  namespaceAnnotation,
  withheldAnnotation,
])
/**
 * On a claim in a member that its tenant's claim has left: RFC 3339, until when it is kept with its volume. Its upstream
 * claim has its data in another member.
 */
export const keptVolumeAnnotation = 'kcp.dev/kept-until'
/** Label on all that a move of a volume makes in members, with the name of the VolumeMove. */
export const volumeMoveLabel = 'kcp.dev/volume-move'
/**
 * Label of VolumeSnapshots and VolumeSnapshotContents in members that belong to a LogicalClusterSnapshot, with its uid.
 */
export const volumeSnapshotLabel = 'kcp.dev/volume-snapshot'
/** The field manager of everything a syncer applies, and `managed-by` of the EndpointSlices it creates. */
export const syncerFieldManager = 'kcp-syncer'
/** Prefix of our annotations. Annotations with it are not copied between upstream and member. */
export const ownAnnotationPrefix = 'kcp.dev/'

/** On namespaces in members, and in selectors of namespaces: the id of the logical cluster. */
export const clusterLabel = 'kcp.dev/logical-cluster'
/**
 * Label that the admin of a member writes on a namespace there: the id of the logical cluster that may adopt it. While
 * it is there, kcp may write in the namespace; kcp can only remove it.
 */
export const adoptableLabel = 'kcp.dev/adoptable-by'
/**
 * Prefix of the labels by which a namespace in a member carries those of its upstream namespace: a hash of the key
 * follows.
 */
export const namespaceLabelPrefix = 'namespace.kcp.dev/'

// --- The installation. ---

/** Namespace of our own objects: in members, and in the cluster with the MemberClusters for their Secrets. */
export const systemNamespace = 'kcp-system'
/** Secret in the systemNamespace of a host: the keys of the installation. */
export const installationKeysName = 'kcp-keys'
/**
 * Objects in the systemNamespace of a member: the nameserver with its identity, the agent, and the syncer's identity.
 * `tokenSecret`, a token that does not expire, exists in members that joined long ago. Joining again deletes it.
 */
export const memberParts = {
  nameserver: 'kcp-dns',
  /** Deployment, Service, Secret and ServiceAccount. */
  gateway: 'kcp-gateway',
  /** In pull mode: Deployment, Service, Role, and the Secret with the agent's key and certificate. */
  agent: 'kcp-agent',
  /** In pull mode: the Secret that joining makes for the agent. */
  agentJoin: 'kcp-agent-join',
  syncerAccount: 'kcp-syncer',
  tokenSecret: 'kcp-syncer-token',
} as const
/** On a MemberCluster, until nothing of any logical cluster is left in the member. */
export const memberFinalizer = 'kcp.dev/member'
/** On a MemberCluster, written when it joins: the uid of the member's kube-system, until the first status has it. */
export const kubeSystemUidAnnotation = 'kcp.dev/kube-system-uid'
/**
 * On a MemberCluster, and on kcp's ServiceAccounts in the member: which installation joined it, by the uid of the
 * namespace kube-system beside its MemberClusters.
 */
export const installationAnnotation = 'kcp.dev/installation'

/**
 * The installation to which the syncer's ServiceAccount in a member belongs; undefined if it is ours, or if one of the
 * two is not known.
 */
export function otherOwnerOf(account: KubeObject | undefined, ours: string | undefined): string | undefined {
  const owner = account?.metadata.annotations?.[installationAnnotation]
  return ours === undefined || owner === ours ? undefined : owner
}

// --- The scheduler's decision. ---

/**
 * States of one copy, in the order of its life. Forwarding: the copy goes, and the Ingresses and Services of its
 * namespace stay for clients that still know the addresses of the member. Held: the copy is wanted and cannot be
 * created. Lost: the member does not answer. Fenced: it does not answer, and somebody has made sure that nothing runs
 * there.
 */
export const copyStates = [
  'Assumed',
  'Syncing',
  'Applied',
  'Available',
  'Serving',
  'Draining',
  'Forwarding',
  'Terminating',
  'Held',
  'Lost',
  'Fenced',
] as const
export type CopyState = (typeof copyStates)[number]
/** The states of a copy between its creation and the first time that it serves. */
export const arrivingStates: readonly CopyState[] = ['Syncing', 'Applied', 'Available']

export interface PlacedCopy {
  readonly state: CopyState
  /** RFC 3339: when the copy entered this state. */
  readonly since?: string
  readonly reason?: string
  readonly message?: string
  /** How many of the replicas the member runs. Absent: all. */
  readonly replicas?: number
  /** The first ordinal of a StatefulSet there, while it moves. Absent: as the spec says. */
  readonly start?: number
  /** The pod of a StatefulSet that goes to another member next: it takes no new requests. */
  readonly ending?: EndingOrdinal
  /**
   * The ordinal of the pod that it gets next, once the data of this pod is here. No member has the pod, and no member
   * begins it while this is said.
   */
  readonly awaits?: number
  /** Its replicas become fewer, because other members have them: the pods that end take no new requests. */
  readonly shrinking?: ShrinkingShare
  /**
   * Its rollout waits, because another copy takes its place and has the present template already; of a StatefulSet that
   * moves pod by pod, because one pod at a time ends, whatever the cause.
   */
  readonly paused?: true
  /** Its logical cluster is asleep: the copy stays, and has no pods. */
  readonly asleep?: true
  /** What it waits for before its next state. */
  readonly wait?: CopyWait
  /** Changes that somebody makes in the member are reported; absent: they are corrected. */
  readonly drift?: 'Report'
}
/** Pods that take no new requests before they end. */
export interface Withdrawal {
  /** RFC 3339: since when they take none, or since when all members know. */
  readonly since: string
  /** True once all members know that the pods take no requests. */
  readonly isKnown?: true
}
export interface EndingOrdinal extends Withdrawal {
  readonly ordinal: number
}
export interface ShrinkingShare extends Withdrawal {
  /** How many replicas stay. */
  readonly to: number
}
export interface CopyWait {
  /** The condition that is not met yet. */
  readonly gate: string
  /** RFC 3339. */
  readonly since: string
  /** RFC 3339. Absent: without limit. */
  readonly until?: string
  /** What happens at `until`: Held, Removed, StartsElsewhere; or Waits. */
  readonly then: string
  /** How far it is, in words. */
  readonly detail?: string
}
/** By member name. A member that is not in it has no copy and gets none. */
export type PlacedOn = Readonly<Record<string, PlacedCopy>>

/** Decisions that were read last, by their texts: scheduler and syncers read each many times. */
const parsedDecisions = new Map<string, PlacedOn>()
const maxParsedDecisions = 2000
const nowhere: PlacedOn = Object.freeze({})

/** The decision that is written on the object; empty if there is none. */
export function placedOn(object: KubeObject): PlacedOn {
  const text = object.metadata.annotations?.[placedOnAnnotation]
  if (text === undefined) return nowhere
  return (
    parsedDecisions.get(text) ?? remember(parsedDecisions, text, parseDecision(object), { max: maxParsedDecisions })
  )
}

function parseDecision(object: KubeObject): PlacedOn {
  const value = parseAnnotation(object, placedOnAnnotation)
  const found: Record<string, PlacedCopy> = {}
  for (const [member, copy] of Object.entries(value)) {
    if (isJsonObject(copy) && copyStates.includes(copy['state'] as CopyState))
      found[member] = copy as unknown as PlacedCopy
  }
  return Object.freeze(found)
}

/** True if the copy should exist in the member. */
export function hasCopy(copy: PlacedCopy | undefined): boolean {
  return copy !== undefined && !['Assumed', 'Terminating', 'Forwarding', 'Held', 'Fenced'].includes(copy.state)
}

/** The members in which a copy of the object should exist. */
export function membersWithCopy(object: KubeObject): string[] {
  return Object.entries(placedOn(object))
    .filter(([, copy]) => hasCopy(copy))
    .map(([member]) => member)
}

/**
 * The identity of a spec as one member has it, with the replicas that the member runs: the value of sourceAnnotation,
 * and of `observed` in the member's report. The spec must not be changed afterwards; specs from a cache never are.
 */
export function sourceOf(
  spec: unknown,
  { replicas, start, paused, asleep }: Pick<PlacedCopy, 'replicas' | 'start' | 'paused' | 'asleep'> = {},
): string {
  const hash = asleep ? `${unchangingHash(spec)} asleep` : unchangingHash(spec)
  if (replicas === undefined) return hash
  // A pod of a StatefulSet moves only once no rollout can end another pod, so a move waits until the member has
  // observed the pause.
  return start === undefined ? `${hash} ${replicas}` : `${hash} ${replicas}+${start}${paused ? ' paused' : ''}`
}

/** How many pods a copy should have, of a workload that wants `all`. */
export function replicasOfCopy(copy: Pick<PlacedCopy, 'replicas' | 'asleep'> | undefined, all: number): number {
  return copy?.asleep ? 0 : (copy?.replicas ?? all)
}

// --- Copies and what members report. ---

/** What a member reports about its copy of a custom resource. While there is a report, it may have something of it. */
export interface CustomObjectReport {
  /** customSourceOf the object that it has. */
  readonly observed?: string
  /** Its controller finds the copy well. */
  readonly ready?: true
  /** As in MemberStatus. */
  readonly drift?: string
}

/** The identity of the content of a custom resource. The object must not be changed afterwards. */
export function customSourceOf(object: { readonly metadata: unknown }): string {
  const known = customSources.get(object)
  if (known !== undefined) return known
  const { metadata: _metadata, status: _status, ...content } = object as unknown as KubeObject
  const hash = contentHash(content)
  customSources.set(object, hash)
  return hash
}

const customSources = new WeakMap<object, string>()

/** The upstream object of a copy. `uid` is of that object, `clusterId` of its logical cluster. */
export interface Locator {
  readonly cluster: string
  readonly clusterId: string
  readonly namespace: string
  readonly name: string
  readonly uid: string
}

/** The locator of an object in a member; undefined if the object is not a copy of ours. */
export function tryLocator(object: KubeObject): Locator | undefined {
  const value = parseAnnotation(object, locatorAnnotation)
  for (const field of ['cluster', 'clusterId', 'namespace', 'name', 'uid']) {
    if (typeof value[field] !== 'string') return undefined
  }
  return value as unknown as Locator
}

/** The JSON object in an annotation; empty if the annotation is absent or invalid. */
export function parseAnnotation(
  object: { readonly metadata: { readonly annotations?: Readonly<Record<string, string>> } },
  annotation: string,
): Record<string, unknown> {
  const text = object.metadata.annotations?.[annotation]
  if (text === undefined) return {}
  try {
    const value: unknown = parseJsonText(text)
    return isJsonObject(value) ? value : {}
  } catch {
    return {}
  }
}

/** What all members report about an upstream object, by member. */
export function memberStatusesOf<T>(object: KubeObject): Record<string, T> {
  const statuses: Record<string, T> = {}
  for (const annotation of Object.keys(object.metadata.annotations ?? {})) {
    if (!annotation.startsWith(memberStatusAnnotationPrefix)) continue
    statuses[annotation.slice(memberStatusAnnotationPrefix.length)] = parseAnnotation(object, annotation) as T
  }
  return statuses
}

/** What a member reports about its copy of an object: the fields of the status that its StatusRule names. */
export interface MemberStatus {
  /** Content hash of the upstream spec that the member's controller has processed. */
  readonly observed?: string
  readonly conditions?: readonly StatusCondition[]
  /** Why the copy could not be synced: the message of the member's API server. */
  readonly error?: string
  /** The fields of the copy that others have changed in the member, and who. */
  readonly drift?: string
  readonly [field: string]: unknown
}
export interface StatusCondition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
  readonly lastUpdateTime?: string
}

/**
 * What a member reports about its copy of a Service: the ready endpoints it knows, counted by the member they run in.
 */
export interface ServiceMemberStatus {
  readonly endpoints?: Readonly<Record<string, number>>
  /**
   * It can be reached from outside the member: it has addresses of a load balancer, or an Ingress with addresses leads
   * to it.
   */
  readonly external?: true
  /** Of a Service that stands for an exported one: its cluster IPs in the member. */
  readonly addresses?: readonly string[]
  readonly error?: string
}

// --- Names in members. ---

const clusterIdLength = 10

/** Most characters of a namespace that follow the id in the name of the namespace in a member, which has at most 63. */
const maxSuffixLength = 63 - (clusterIdLength + 1)

/**
 * How a namespace of one length, which is too long for members, is shortened: what is kept of both ends, and what
 * stands between.
 */
export interface Shortening {
  readonly begin: number
  readonly omitted: number
  readonly end: number
  readonly mark: string
}

/** For each length of 53 to 63 characters. The nameserver shortens names in the same way, by regular expressions. */
export const shortenings: readonly Shortening[] = Array.from('0123456789x', (mark, index) => {
  const begin = 25
  const end = maxSuffixLength - begin - mark.length
  return { begin, omitted: maxSuffixLength + 1 + index - begin - end, end, mark }
})

/**
 * What follows the id in the name of a namespace in a member: the upstream name, or if it is too long for that, its
 * beginning and its end. Two long names may be shortened to one: then the second namespace is refused.
 */
export function namespaceSuffix(namespace: string): string {
  const how = shortenings[namespace.length - maxSuffixLength - 1]
  return how === undefined ? namespace : `${namespace.slice(0, how.begin)}${how.mark}${namespace.slice(-how.end)}`
}

/** The namespace in a member for a namespace of a logical cluster: `ID-NAMESPACE`, with namespaceSuffix. */
export function downstreamNamespace(id: ClusterId, namespace: string): string {
  return `${id}-${namespaceSuffix(namespace)}`
}

/**
 * The reverse of downstreamNamespace; undefined for a namespace that is not of that form. `suffix` is the upstream
 * namespace. If it may be shortened (`isShortened`), the locator of the namespace has the name.
 */
export function parseDownstreamNamespace(
  name: string,
): { readonly clusterId: ClusterId; readonly suffix: string; readonly isShortened: boolean } | undefined {
  const clusterId = tryClusterId(name.slice(0, clusterIdLength))
  if (clusterId === undefined || name[clusterIdLength] !== '-') return undefined
  const suffix = name.slice(clusterIdLength + 1)
  return { clusterId, suffix, isShortened: suffix.length === maxSuffixLength }
}

/**
 * Short id of a member, from the uid of its kube-system: 50 bits of SHA-256 in base32, like the ids of logical
 * clusters. Tokens of pods in the member have the audience `CLUSTERID.MEMBERID`.
 */
export function memberIdOf(kubeSystemUid: string): string {
  const letters = 'abcdefghijklmnopqrstuvwxyz234567'
  const digest = createHash('sha256').update(`kcp.dev/membercluster/${kubeSystemUid}`).digest()
  let id = letters[(digest[0] ?? 0) % 26] ?? 'a'
  for (let i = 1; i < 10; i++) id += letters[(digest[i] ?? 0) & 31] ?? 'a'
  return id
}
