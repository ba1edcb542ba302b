// The input of one decision about a workload, read from caches only.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { keyFor, namespaceKeyOf, type DeepReadonly } from '#client/index.ts'
import {
  asleepMessage,
  lostAfterMs,
  placedOn,
  type LogicalCluster,
  type PlacedOn,
  type ServiceNetwork,
  volumeConsentAnnotation,
  type VolumeMovePhase,
} from '#crds/index.ts'
import {
  applicableRules,
  type ApplicableRules,
  choiceOf,
  claimsWithData,
  failoverInMs,
  limitMs,
  memberFacts,
  memberOfClaim,
  unreachableSince,
  type Candidate,
  type Choice,
  type CopySeen,
  type PlacedRoom,
  type Rebalancing,
  type Rejection,
  type VolumeCopy,
  ordinalOfClaim,
  unknownClaim,
  type OrdinalVolumes,
  type VolumesSeen,
} from '#placement/index.ts'
import { copySeen, selects } from './copy-seen.ts'
import { isArriving } from './enqueue.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { parseWorkloadKey, workloadKey, type WorkloadRef } from './workload-key.ts'

type CachedObject = DeepReadonly<KubeObject>

/** Another workload of the namespace. */
export interface Sibling {
  readonly placedOn: PlacedOn
  /** Computed on demand, because it costs as much as a decision. Undefined: its logical cluster is not known yet. */
  readonly choice: () => Choice | undefined
}

export interface ObservedVolumes extends VolumesSeen {
  /** Why moves of its volumes do not go on. */
  readonly problems: readonly Rejection[]
}

export interface Observed {
  readonly choice: Choice
  /** The decision that is written on the workload now. */
  readonly placedOn: PlacedOn
  readonly seen: (member: string) => CopySeen
  readonly networkOf: (member: string) => ServiceNetwork
  /** Absent: the workload has no volumes with data. */
  readonly volumes?: ObservedVolumes
  /** Computed on demand: only a copy that could drain needs them. */
  readonly siblings: () => Iterable<Sibling>
}

/** Everything about one workload; undefined while its logical cluster is not known. */
export function observe(
  ref: WorkloadRef,
  workload: CachedObject,
  inputs: PlacementInputs,
  nowMs: number,
): Observed | undefined {
  const choice = choiceFor(ref, workload, inputs, nowMs)
  if (choice === undefined) return undefined
  const namespaceKey = namespaceKeyOf(ref.objectKey)
  const services = inputs.servicesIn(namespaceKey).filter((service) => selects(service, workload))
  const networkOf = (member: string): ServiceNetwork => inputs.networkOf(member)
  const isReady = (member: string): boolean => inputs.isReady(member)
  // Guards ask for the same member again and again.
  const seen = oncePerMember((member) => ({
    ...copySeen(workload, member, { services, networkOf, isReady }),
    // A fenced member cannot be asked; an admin has made sure that nothing is left there.
    ...(inputs.isFenced(member) && { gone: true, endpointsGone: true, isFenced: true }),
    ...lostOf(choice, member, nowMs),
  }))
  const unknown = unknownOf(workload, choice, { seen, claims: () => inputs.claimsIn(namespaceKey) })
  const hasVolumes = choice.volumesIn.length > 0 || unknown !== undefined
  return {
    choice,
    placedOn: placedOn(workload as KubeObject),
    seen,
    networkOf,
    ...(hasVolumes && { volumes: volumesOf(workload, { namespaceKey, choice, unknown }, inputs) }),
    siblings: () => siblingsOf(ref, namespaceKey, inputs, nowMs),
  }
}

/** A claim that is not in the logical cluster, though the member that made it has a pod with it. */
interface UnknownClaim {
  readonly member: string
  readonly claim: string
}

function unknownOf(
  workload: CachedObject,
  { scale }: Choice,
  { seen, claims }: Pick<Observed, 'seen'> & { readonly claims: () => Iterable<CachedObject> },
): UnknownClaim | undefined {
  if (scale?.hasOrdinals !== true) return undefined
  for (const [member, copy] of Object.entries(placedOn(workload as KubeObject))) {
    const { pods = 0 } = seen(member)
    if (pods === 0) continue
    const start = copy.start ?? scale.start
    const end = start + (copy.replicas ?? scale.replicas)
    const claim = unknownClaim(workload, claims(), { start, end, pods })
    if (claim !== undefined) return { member, claim }
  }
  return undefined
}

interface VolumesToObserve {
  readonly namespaceKey: string
  readonly choice: Choice
  readonly unknown: UnknownClaim | undefined
}

/** The volumes of the workload, and their moves. */
function volumesOf(
  workload: CachedObject,
  { namespaceKey, choice: { volumesIn }, unknown }: VolumesToObserve,
  inputs: PlacementInputs,
): ObservedVolumes {
  const claims = claimsWithData(workload, inputs.claimsIn(namespaceKey))
  const moves = claims.flatMap(({ metadata }) => [...inputs.movesOfClaim(metadata.uid ?? '')])
  const active = moves.filter(({ status }) => !isOver(status?.phase))
  const isCopiedTo = (claim: CachedObject, to: string): boolean =>
    memberOfClaim(claim) === to ||
    active.some(({ spec, status }) => spec.claimUid === claim.metadata.uid && spec.to === to && isReady(status?.phase))
  const isKnown = (to: string): boolean => unknown === undefined || unknown.member === to
  const isCopied = (to: string): boolean => isKnown(to) && claims.every((claim) => isCopiedTo(claim, to))
  const missing = unknown && [
    `claim "${unknown.claim}" of member cluster "${unknown.member}" is not in the logical cluster yet: without it, its data would stay behind`,
  ]
  const summaries = active.flatMap(({ spec, status }) => (status?.summary ? [`${spec.claim}: ${status.summary}`] : []))
  const problems = active.flatMap(({ spec, status }) => {
    const { reason = '', message = '' } =
      status?.conditions?.find(({ type, status: is }) => type === 'Progressing' && is === 'False') ?? {}
    return reason === '' ? [] : [{ cluster: spec.to, reason, message: `volume of claim "${spec.claim}": ${message}` }]
  })
  const byOrdinal = byOrdinalOf(workload, claims, { isKnown, isCopiedTo })
  const progress = [...(missing ?? []), ...summaries]
  return {
    in: volumesIn,
    isCopied,
    ...(unknown && { unknownIn: unknown.member }),
    ...(byOrdinal && { byOrdinal }),
    ...(progress.length > 0 && { progress: progress.slice(0, maxSummaries).join('; ') }),
    problems: problems.slice(0, maxSummaries),
  }
}

/** The volumes by ordinal; undefined if a claim is not that of one pod of a StatefulSet. */
function byOrdinalOf(
  workload: CachedObject,
  claims: readonly CachedObject[],
  {
    isKnown,
    isCopiedTo,
  }: {
    readonly isKnown: (to: string) => boolean
    readonly isCopiedTo: (claim: CachedObject, to: string) => boolean
  },
): OrdinalVolumes | undefined {
  const ofOrdinal = new Map<number, CachedObject[]>()
  for (const claim of claims) {
    const ordinal = ordinalOfClaim(workload, claim)
    if (ordinal === undefined) return undefined
    ofOrdinal.set(ordinal, [...(ofOrdinal.get(ordinal) ?? []), claim])
  }
  const at = (ordinal: number): readonly CachedObject[] => ofOrdinal.get(ordinal) ?? []
  const ordinals = [...ofOrdinal.keys()].sort((a, b) => a - b)
  return {
    in: (ordinal) => at(ordinal).flatMap((claim) => memberOfClaim(claim) ?? []),
    isCopied: (ordinal, to) => isKnown(to) && at(ordinal).every((claim) => isCopiedTo(claim, to)),
    firstElsewhere: (member) =>
      ordinals.find((ordinal) => at(ordinal).some((claim) => memberOfClaim(claim) !== member)),
  }
}

/** How many volumes the wait of a workload tells about. */
const maxSummaries = 5

function isOver(phase: VolumeMovePhase | undefined): boolean {
  return phase === 'Moved' || phase === 'Cancelled'
}

function isReady(phase: VolumeMovePhase | undefined): boolean {
  return phase === 'Ready' || phase === 'Finishing' || phase === 'Binding'
}

function oncePerMember<T>(compute: (member: string) => T): (member: string) => T {
  const known = new Map<string, T>()
  return (member) => {
    let found = known.get(member)
    if (found === undefined) known.set(member, (found = compute(member)))
    return found
  }
}

/** Whether the member of a copy is lost. */
export function lostOf({ candidates, demand }: Choice, member: string, nowMs: number): Pick<CopySeen, 'lost'> {
  const candidate = candidates.find(({ name }) => name === member)
  if (candidate?.unreachableMs === undefined || candidate.unreachableMs < lostAfterMs) return {}
  const failoverMs = failoverInMs(candidate, demand)
  return { lost: failoverMs === undefined ? {} : { failoverAtMs: nowMs - candidate.unreachableMs + limitMs(demand) } }
}

function* siblingsOf(
  ref: WorkloadRef,
  namespaceKey: string,
  inputs: PlacementInputs,
  nowMs: number,
): Generator<Sibling> {
  for (const key of inputs.workloadKeysInNamespace(namespaceKey)) {
    const other = parseWorkloadKey(key)
    if (other === undefined || (other.objectKey === ref.objectKey && other.kind.kind === ref.kind.kind)) continue
    const workload = inputs.workload(other)
    if (workload === undefined || workload.metadata.deletionTimestamp !== undefined) continue
    yield { placedOn: placedOn(workload as KubeObject), choice: () => choiceFor(other, workload, inputs, nowMs) }
  }
}

function choiceFor(
  { kind, cluster, namespace, objectKey }: WorkloadRef,
  workload: CachedObject,
  inputs: PlacementInputs,
  nowMs: number,
): Choice | undefined {
  const owner = inputs.clusters.store.get(cluster)
  if (owner === undefined || isArriving(owner)) return undefined
  const key = workloadKey(kind, objectKey)
  const rebalancing = inputs.rebalancing.get(key)
  const candidates = candidatesFor(owner, { workload, key }, inputs, nowMs)
  const claims = inputs.claimsIn(namespaceKeyOf(objectKey))
  const room = inputs.placedLimits.roomFor(cluster, inputs.usage.requestsOfWorkload(key))
  const asleep = asleepMessage(owner.status?.sleep)
  return choiceOfObject({ workload, cluster, namespace, candidates, claims, rebalancing, room, asleep }, inputs, nowMs)
}

interface ObjectToPlace {
  readonly workload: CachedObject
  readonly cluster: string
  /** Empty for an object without a namespace. */
  readonly namespace: string
  readonly candidates: readonly Candidate[]
  readonly claims: Iterable<CachedObject>
  readonly rebalancing?: Rebalancing | undefined
  readonly room?: PlacedRoom | undefined
  /** Of a workload: that its logical cluster is asleep. */
  readonly asleep?: string | undefined
}

/** The question where an object should run; undefined while its logical cluster is not known. */
export function choiceOfObject(
  { workload, cluster, namespace, candidates, claims, rebalancing, room, asleep }: ObjectToPlace,
  inputs: PlacementInputs,
  nowMs: number,
): Choice | undefined {
  const owner = inputs.clusters.store.get(cluster)
  if (owner === undefined) return undefined
  const namespaceObject = inputs.namespaces.store.get(keyFor({ cluster, name: namespace }))
  return choiceOf({
    workload,
    namespace,
    namespaceObject,
    rules: rulesFor(cluster, namespaceObject, inputs),
    claims: [...claims],
    members: () => inputs.members.store.list(),
    candidates,
    near: inputs.membersOfOthers(`${cluster}|${namespace}`, workload),
    keyOf: (name, isTenants) => keyFor(isTenants ? { cluster, name } : { name }),
    ...(rebalancing && { rebalancing }),
    ...(room && { room }),
    asleep,
    copyOf: (withData) => copyOf(withData, inputs),
    nowMs,
  })
}

/** The copy of all these claims that one member keeps up to date. */
function copyOf(claims: readonly CachedObject[], inputs: PlacementInputs): VolumeCopy | undefined {
  const copies = claims.map(({ metadata }) =>
    [...inputs.movesOfClaim(metadata.uid ?? '')].find(
      ({ spec, status }) => spec.way === 'Replicate' && !isOver(status?.phase) && status?.lastRound !== undefined,
    ),
  )
  const members = new Set(copies.map((copy) => copy?.spec.to))
  const [member] = members
  if (members.size !== 1 || member === undefined) return undefined
  const times = copies.map((copy) => copy?.status?.lastRound?.completionTime ?? '')
  const asOf = times.toSorted()[0] ?? ''
  return {
    member,
    asOf,
    claims: claims.map(({ metadata }) => metadata.name ?? ''),
    isAgreed: claims.every(({ metadata }) => metadata.annotations?.[volumeConsentAnnotation] === `${member}@${asOf}`),
  }
}

/** The Placements that hold for a namespace of the logical cluster. */
export function rulesFor(
  cluster: string,
  namespace: CachedObject | undefined,
  inputs: PlacementInputs,
): ApplicableRules {
  return applicableRules(
    {
      ofTenant: inputs.tenantPlacementsIn(cluster),
      ofAdmins: [...inputs.adminPlacements.store.list(), ...inputs.inheritedPlacements(cluster)],
    },
    { clusterLabels: inputs.labelsOf(cluster), namespaceLabels: namespace?.metadata.labels },
  )
}

/** All members as placement sees them. */
export function candidatesFor(
  { metadata: { name: cluster } }: DeepReadonly<LogicalCluster>,
  { workload, key }: { readonly workload: CachedObject; readonly key: string },
  inputs: PlacementInputs,
  nowMs: number,
): Candidate[] {
  const isFrozen = inputs.isFailoverFrozen
  const labels = inputs.labelsOf(cluster)
  return inputs.members.store.list().map((member) => {
    const { name } = member.metadata
    const facts = memberFacts(member, { clusterLabels: labels, workload })
    const since = unreachableSince(member)
    return {
      ...facts,
      state: inputs.stateOf(member),
      load: inputs.loadOf(name),
      ownLoad: inputs.loadOfCluster(cluster, name),
      isFenced: inputs.isFenced(name),
      ...(since !== undefined && { unreachableMs: nowMs - since, isFailoverFrozen: isFrozen }),
      ...(facts.limits && { requested: inputs.usage.requestedIn(name, { without: key }) }),
    }
  })
}
