// Which volumes should move where, or be restored: makes a VolumeMove for each claim with data that a workload needs in another member,
// and deletes it when no workload does any more. src/operator/volumes performs them.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { keyFor, namespaceKeyOf, parseKey, type DeepReadonly, type KubeClient } from '#client/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import {
  areVolumesEnding,
  contentHash,
  emptyVolumeConsent,
  logicalClusterSnapshots,
  newEvent,
  placedOnAnnotation,
  volumeAnnotation,
  volumeConsentAnnotation,
  volumeMoves,
  volumeSourceAnnotation,
  volumeSourceOf,
  type LogicalClusterSnapshot,
  type MemberCluster,
  type SnapshotVolume,
  type VolumeMove,
  type VolumeSource,
} from '#crds/index.ts'
import {
  awaitedIn,
  claimsWithData,
  decide,
  endsWithPod,
  memberOfClaim,
  needsClaim,
  usesClaim,
  volumeRuleOf,
} from '#placement/index.ts'
import type { KeyQueue, ReconcileResult } from '#reconcile/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import { candidatesFor, choiceOfObject, rulesFor } from './observe.ts'
import type { PlacementInputs } from './placement-inputs.ts'

type CachedObject = DeepReadonly<KubeObject>

const claims = { group: '', version: 'v1', resource: 'persistentvolumeclaims' } as const
const events = { group: '', version: 'v1', resource: 'events' } as const

/** Puts the keys of claims that may have to move into the queue. Returns the function that ends it. */
export function followVolumes(inputs: PlacementInputs, queue: Pick<KeyQueue, 'add'>): () => void {
  const ends = [
    ...inputs.workloads.map(({ informer }) =>
      informer.onChange(({ key, before, after }) => {
        const workload = after ?? before
        const [was, is] = [before, after].map((one) => one?.metadata.annotations?.[placedOnAnnotation])
        if (workload === undefined || was === is) return
        const { cluster = '', namespace = '' } = parseKey(key)
        for (const { metadata } of claimsWithData(workload, inputs.claimsIn(namespaceKeyOf(key))))
          queue.add(keyFor({ cluster, namespace, name: metadata.name ?? '' }))
      }),
    ),
    inputs.claims.onChange(({ key, before, after }) => {
      if ((before && memberOfClaim(before)) !== (after && memberOfClaim(after))) queue.add(key)
    }),
    inputs.adminPlacements.onChange(({ before, after }) => {
      if (JSON.stringify(before?.spec?.volumes) === JSON.stringify(after?.spec?.volumes)) return
      for (const key of inputs.claims.store.keys()) {
        const claim = inputs.claims.store.get(key)
        if (claim !== undefined && memberOfClaim(claim) !== undefined) queue.add(key)
      }
    }),
    inputs.members.onChange(({ key, before, after }) => {
      if (isDraining(before, inputs) === isDraining(after, inputs)) return
      for (const name of inputs.claims.store.keys()) {
        const claim = inputs.claims.store.get(name)
        if (claim !== undefined && memberOfClaim(claim) === key) queue.add(name)
      }
    }),
    inputs.volumeMoves.onChange(({ before, after }) => {
      const { spec } = after ?? before ?? {}
      if (spec === undefined || before?.status?.phase === after?.status?.phase) return
      queue.add(keyFor({ cluster: spec.logicalCluster, namespace: spec.namespace, name: spec.claim }))
    }),
  ]
  return () => {
    for (const end of ends) end()
  }
}

function isDraining(member: DeepReadonly<MemberCluster> | undefined, inputs: PlacementInputs): boolean {
  return member !== undefined && inputs.stateOf(member) === 'Draining'
}

export interface VolumeWishContext extends Pick<OperatorContext, 'clusters' | 'virtual'> {
  readonly inputs: PlacementInputs
}

/** Makes and deletes VolumeMoves of one claim. Rejects with StatusError. */
export async function reconcileVolumeWish(
  key: string,
  { inputs, clusters, virtual }: VolumeWishContext,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const claim = inputs.claims.store.get(key)
  const from = claim && memberOfClaim(claim)
  if (claim === undefined || from === undefined || claim.metadata.deletionTimestamp !== undefined) return {}
  if (endsWithPod(claim)) return {}
  const source = volumeSourceOf(claim)
  if (source !== undefined)
    return await reconcileSource(key, claim, { source, from }, { inputs, clusters, virtual }, signal)
  const wanted = wantedIn(claim, from, inputs.workloadsInNamespace(namespaceKeyOf(key)))
  const isLeaving = wanted === undefined && isDraining(inputs.members.store.get(from), inputs)
  const evacuation = isLeaving ? evacuationOf(key, claim, from, inputs) : undefined
  const to = wanted ?? evacuation ?? standbyOf(key, claim, from, inputs)
  const known = [...inputs.movesOfClaim(claim.metadata.uid ?? '')].filter(
    ({ metadata }) => metadata.deletionTimestamp === undefined,
  )
  // A move whose claim has arrived keeps the old volume for a while; not longer than until the claim goes there again.
  const stale = known.filter(({ spec, status }) =>
    status?.phase === 'Moved' ? spec.from === from && spec.to === to : spec.to !== from && spec.to !== to,
  )
  if (stale.length > 0) {
    const { cluster = '', namespace = '', name } = parseKey(key)
    const now = await virtual(`/clusters/${cluster}`).tryGet<KubeObject>(claims, { namespace, name }, { signal })
    // Our cache may be older than the move.
    const isCurrent = now?.metadata.uid === claim.metadata.uid && now !== undefined && memberOfClaim(now) === from
    if (isCurrent) for (const { metadata } of stale) await remove(metadata, clusters, signal)
    return { requeueAfterSeconds: 1 }
  }
  // Neither workloads that stop using the claim nor members that become free for it are followed.
  if (to === undefined)
    return isLeaving || isWithoutStandby(key, claim, inputs) ? { requeueAfterSeconds: standbySeconds } : {}
  if (known.some(({ spec }) => spec.from === from && spec.to === to)) return {}
  // A move from a member that is not registered would end at once, and be made again.
  if (inputs.members.store.get(from) === undefined) return { requeueAfterSeconds: standbySeconds }
  const move = volumeMoveOf(key, claim, { from, to }, inputs)
  if (move === undefined) return {}
  await clusters.create(volumeMoves, move, { signal }).catch(tolerate('AlreadyExists'))
  return {}
}

/** Seconds between two looks at a claim whose snapshot, or the member with it, is gone. */
const sourceSeconds = 30

/**
 * Makes the VolumeMove by which the claim gets its volume from a snapshot. Only the record in the host is believed: a
 * restore writes its name on the claim, and the handle, driver and member come from the record.
 */
async function reconcileSource(
  key: string,
  claim: CachedObject,
  { source, from }: { readonly source: VolumeSource; readonly from: string },
  { inputs, clusters, virtual }: VolumeWishContext,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const known = [...inputs.movesOfClaim(claim.metadata.uid ?? '')]
  if (known.some(({ spec, metadata }) => spec.way === 'Restore' && metadata.deletionTimestamp === undefined)) return {}
  const { cluster = '', namespace = '', name } = parseKey(key)
  const upstream = virtual(`/clusters/${cluster}`)
  const ref = { namespace, name }
  const now = await upstream.tryGet<KubeObject>(claims, ref, { signal })
  // Our cache may be older than a restore that has ended.
  if (now?.metadata.uid !== claim.metadata.uid || now === undefined || volumeSourceOf(now) === undefined) return {}
  const { resourceVersion, uid } = now.metadata
  if (now.metadata.annotations?.[volumeConsentAnnotation] === emptyVolumeConsent) {
    const names = [volumeSourceAnnotation, volumeAnnotation, volumeConsentAnnotation]
    const annotations = Object.fromEntries(names.map((one) => [one, null]))
    await upstream.patch(claims, ref, 'merge', { metadata: { uid, resourceVersion, annotations } }, { signal })
    return {}
  }
  const snapshot =
    source.snapshot === ''
      ? undefined
      : await clusters.tryGet<LogicalClusterSnapshot>(logicalClusterSnapshots, { name: source.snapshot }, { signal })
  const record = recordOf(snapshot, source, from)
  if (typeof record === 'string' || inputs.members.store.get(from) === undefined) {
    const gone = `member cluster "${from}", whose storage has its snapshot, is not registered`
    await tellSource(upstream, now, { namespace, message: typeof record === 'string' ? record : gone }, signal)
    return { requeueAfterSeconds: sourceSeconds }
  }
  const { driver = '', handle = '', bytes, storageClass } = record
  const move: VolumeMove = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'VolumeMove',
    metadata: { name: `r-${contentHash([uid, source.uid, source.claimUid])}` },
    spec: {
      ...{ logicalCluster: cluster, namespace, claim: name, claimUid: uid ?? '', from, to: from, way: 'Restore' },
      snapshot: { name: source.snapshot, driver, handle, ...(bytes !== undefined && { bytes }) },
      ...(storageClass !== undefined && storageClass !== '' && { storageClass }),
      retainSeconds: 0,
    },
  }
  await clusters.create(volumeMoves, move, { signal }).catch(tolerate('AlreadyExists'))
  return {}
}

/** What the host's record says of the volume; a text: why there is none to be restored. */
function recordOf(
  snapshot: LogicalClusterSnapshot | undefined,
  source: VolumeSource,
  from: string,
): SnapshotVolume | string {
  const named = `LogicalClusterSnapshot "${source.snapshot}"`
  if (snapshot?.metadata.uid !== source.uid) return `${named} is not there any more`
  // While it waits for its users, its deletion has not begun.
  if (areVolumesEnding(snapshot)) return `${named} is being deleted`
  const record = snapshot.status?.volumes?.find(({ claimUid }) => claimUid === source.claimUid)
  if (record?.state !== 'Included') return `${named} has no volume of this claim`
  return record.member === from
    ? record
    : `its snapshot is in member cluster "${record.member ?? ''}", not in "${from}"`
}

/** An Event on a claim whose volume cannot be restored, once for each message. */
async function tellSource(
  upstream: KubeClient,
  { metadata: { name = '', uid = '' } }: KubeObject,
  { namespace, message }: { readonly namespace: string; readonly message: string },
  signal: AbortSignal,
): Promise<void> {
  const remedy = `to begin with an empty volume: kubectl annotate persistentvolumeclaim ${name} --namespace ${namespace} ${volumeConsentAnnotation}=${emptyVolumeConsent}`
  const event = newEvent({
    metadata: { namespace, name: `${name.slice(0, 200)}.${contentHash([uid, message])}` },
    about: { apiVersion: 'v1', kind: 'PersistentVolumeClaim', namespace, name, uid },
    ...{ type: 'Warning', reason: 'SnapshotGone', message: `${message}; ${remedy}` },
    component: 'kcp-volumes',
    now: timestamp(systemClock.now()),
  })
  // An Event is a help only; AlreadyExists: it was told before.
  await upstream.create(events, event, { signal }).catch((error: unknown) => {
    if (!isStatusError(error)) throw error
  })
}

/** The member in which workloads wait for the claim; undefined if there is none, or they disagree. */
function wantedIn(claim: CachedObject, from: string, workloads: Iterable<CachedObject>): string | undefined {
  const members = new Set<string>()
  for (const workload of workloads) {
    const member = usesClaim(workload, claim) ? awaitedIn(workload, claim, from) : undefined
    if (member !== undefined) members.add(member)
  }
  const [only] = members
  return members.size === 1 ? only : undefined
}

/** The member that keeps a copy of the volume; undefined if none does. */
function standbyOf(key: string, claim: CachedObject, from: string, inputs: PlacementInputs): string | undefined {
  const rule = ruleOf(key, claim, inputs)
  if ('why' in rule || rule.way !== 'Replicate') return undefined
  const known = [...inputs.movesOfClaim(claim.metadata.uid ?? '')].map(({ spec }) => spec.to)
  const fits = (member: string): boolean => member !== from && inputs.isReady(member)
  // A copy that is there is not given up because its member, or the one before it in the list, comes and goes.
  return rule.standbys.find((member) => member !== from && known.includes(member)) ?? rule.standbys.find(fits)
}

/**
 * The member to which a claim goes that no workload uses any more, from a member that is drained: the one that would be
 * chosen for a workload with this claim. Undefined: it stays.
 */
function evacuationOf(key: string, claim: CachedObject, from: string, inputs: PlacementInputs): string | undefined {
  const namespaceKey = namespaceKeyOf(key)
  for (const workload of inputs.workloadsInNamespace(namespaceKey)) if (needsClaim(workload, claim)) return undefined
  const { cluster = '', namespace = '', name } = parseKey(key)
  const owner = inputs.clusters.store.get(cluster)
  if (owner === undefined) return undefined
  const standby = standbyOf(key, claim, from, inputs)
  if (standby !== undefined && inputs.isReady(standby)) return standby
  const volumes = [{ name: 'data', persistentVolumeClaim: { claimName: name } }]
  const placed = { [from]: { state: 'Serving' } }
  const workload: KubeObject = {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
    metadata: {
      ...{ name, namespace },
      annotations: { ...claim.metadata.annotations, [placedOnAnnotation]: JSON.stringify(placed) },
    },
    spec: { replicas: 1, template: { spec: { volumes } } },
  }
  const nowMs = systemClock.now()
  const candidates = candidatesFor(owner, { workload, key: `persistentvolumeclaims ${key}` }, inputs, nowMs)
  const choice = choiceOfObject({ workload, cluster, namespace, candidates, claims: [claim] }, inputs, nowMs)
  const wanted = choice && decide(choice).wanted
  const [to] = wanted?.kind === 'members' ? wanted.names : []
  return to === from ? undefined : to
}

/** How often a standby is looked for while none is Ready, and a member for claims that are left in one that is drained. */
const standbySeconds = 30

function isWithoutStandby(key: string, claim: CachedObject, inputs: PlacementInputs): boolean {
  const rule = ruleOf(key, claim, inputs)
  return !('why' in rule) && rule.way === 'Replicate' && rule.standbys.length > 0
}

function ruleOf(key: string, claim: CachedObject, inputs: PlacementInputs): ReturnType<typeof volumeRuleOf> {
  const { cluster = '', namespace = '' } = parseKey(key)
  const found = inputs.namespaces.store.get(keyFor({ cluster, name: namespace }))
  return volumeRuleOf(claim, rulesFor(cluster, found, inputs))
}

/** Undefined if the volume does not move. */
function volumeMoveOf(
  key: string,
  claim: CachedObject,
  { from, to }: { readonly from: string; readonly to: string },
  inputs: PlacementInputs,
): VolumeMove | undefined {
  const { cluster = '', namespace = '', name } = parseKey(key)
  const rule = ruleOf(key, claim, inputs)
  if ('why' in rule) return undefined
  const { storageClass, bandwidth, retainSeconds, requireConsent, everySeconds } = rule
  const way = rule.way === 'Replicate' && !rule.standbys.includes(to) ? 'Copy' : rule.way
  const claimUid = claim.metadata.uid ?? ''
  return {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'VolumeMove',
    metadata: { name: `v-${contentHash([claimUid, from, to])}` },
    spec: {
      ...{ logicalCluster: cluster, namespace, claim: name, claimUid, from, to, way },
      ...(storageClass !== undefined && { storageClass }),
      ...(bandwidth !== undefined && { bandwidth }),
      retainSeconds,
      ...(requireConsent && { requireConsent }),
      ...(way === 'Replicate' && { everySeconds }),
    },
  }
}

async function remove(
  { name, uid }: DeepReadonly<VolumeMove>['metadata'],
  clusters: KubeClient,
  signal: AbortSignal,
): Promise<void> {
  await clusters.delete(volumeMoves, { name }, { ...(uid && { uid }), signal }).catch(tolerate('NotFound', 'Conflict'))
}
