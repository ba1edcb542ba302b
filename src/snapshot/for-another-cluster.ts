// The objects of a snapshot as they begin in another logical cluster: with uids of their own, and without what members
// and the installation had written about those of the first one.
import { hash } from 'node:crypto'
import {
  isJsonObject,
  putField,
  type DeepReadonly,
  type JsonObject,
  type KubeObject,
  type ObjectMeta,
} from '#apimachinery/meta/index.ts'
import {
  exportedFromLabel,
  hasEnded,
  isOwnAnnotation,
  isOwnFinalizer,
  isPlaceable,
  memberAnnotation,
  projectedAnnotation,
  volumeAnnotation,
  volumeSourceAnnotation,
  workloadKindOfObject,
  type LogicalClusterSnapshot,
  type VolumeSource,
} from '#crds/index.ts'

/** Why an object of a snapshot does not begin in another logical cluster. */
export type LeftOut =
  | 'it was being deleted'
  | 'a member makes it again'
  | 'the installation makes it again'
  | 'it tells of something that happened elsewhere'

/** Why the object is left out; undefined if it begins in the other logical cluster. */
export function leftOut(object: KubeObject): LeftOut | undefined {
  const { kind, apiVersion, metadata } = object
  const { annotations = {}, labels = {}, deletionTimestamp } = metadata
  if (deletionTimestamp !== undefined) return 'it was being deleted'
  if (kind === 'Event' || (kind === 'Lease' && apiVersion.startsWith('coordination.k8s.io/')))
    return 'it tells of something that happened elsewhere'
  if (annotations[projectedAnnotation] !== undefined || labels[exportedFromLabel] !== undefined)
    return 'the installation makes it again'
  const isOfMember = annotations[memberAnnotation] !== undefined || labels[memberAnnotation] !== undefined
  if (isOfMember && !isPlaceable(object)) return 'a member makes it again'
  const managers = ['endpointslice-controller.k8s.io', 'endpointslicemirroring-controller.k8s.io', 'kcp-syncer']
  if (kind === 'EndpointSlice' && managers.includes(labels['endpointslice.kubernetes.io/managed-by'] ?? ''))
    return 'a member makes it again'
  return undefined
}

/**
 * A uid for an object in another logical cluster: the same for the same two arguments, so that a copy that was broken
 * off and begins again makes the same objects. Version 8 of RFC 9562.
 */
export function uidInCluster(cluster: string, uid: string): string {
  const hex = hash('sha256', `kcp.dev/copy/${cluster}/${uid}`)
  const variant = ((parseInt(hex[16] ?? '0', 16) & 3) | 8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

/** The object as it begins elsewhere. `uids`: the new uid of each object of the snapshot. */
export function forAnotherCluster(object: KubeObject, uids: ReadonlyMap<string, string>): KubeObject {
  const renamed = withUids(object, uids)
  const begun: KubeObject = { ...renamed, metadata: ownMetadata(renamed.metadata) }
  if (isAccountToken(object)) delete begun['data']
  return withoutPlace(begun, object)
}

/** The object with other uids, its own and wherever it names that of another object; data of tenants stay. */
export function withUids(object: KubeObject, uids: ReadonlyMap<string, string>): KubeObject {
  const isData = object.kind === 'ConfigMap' || object.kind === 'Secret'
  if (!isData) return valueWithUids(object, uids) as KubeObject
  return { ...object, metadata: valueWithUids(object.metadata, uids) as ObjectMeta }
}

function ownMetadata({ resourceVersion: _, ...metadata }: ObjectMeta): ObjectMeta {
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([name]) => !isOwnAnnotation(name))
  const finalizers = (metadata.finalizers ?? []).filter((finalizer) => !isOwnFinalizer(finalizer))
  const { annotations: _annotations, finalizers: _finalizers, ...others } = metadata
  return {
    ...others,
    ...(annotations.length > 0 && { annotations: Object.fromEntries(annotations) }),
    ...(finalizers.length > 0 && { finalizers }),
  }
}

/** The volume of a claim of the snapshot, which the storage of a member keeps. */
export interface KeptVolume {
  readonly member: string
  readonly source: VolumeSource
}

/** The volumes that a LogicalClusterSnapshot includes, by the uid of their claim. Its status alone is believed. */
export function keptVolumes({ metadata, status }: DeepReadonly<LogicalClusterSnapshot>): Map<string, KeptVolume> {
  const { name, uid = '' } = metadata
  const volumes = (status?.volumes ?? []).flatMap(({ claimUid, member, state }): [string, KeptVolume][] =>
    state === 'Included' && member !== undefined
      ? [[claimUid, { member, source: { snapshot: name, uid, claimUid } }]]
      : [],
  )
  return new Map(volumes)
}

/** Facts of the volume that the claim had, on claims: provisioners and schedulers read them. */
const volumeFacts = /^(pv|volume|volume\.beta)\.kubernetes\.io\//

/** The claim as it begins where its volume is restored: in the member that keeps the snapshot. */
export function withVolume(claim: KubeObject, { member, source }: KeptVolume): KubeObject {
  const { annotations = {}, labels = {}, ...metadata } = claim.metadata
  const others = Object.entries(annotations).filter(([name]) => !volumeFacts.test(name))
  const ownLabels = Object.entries(labels).filter(([name]) => name !== memberAnnotation)
  return {
    ...claim,
    metadata: {
      ...metadata,
      ...(ownLabels.length > 0 && { labels: Object.fromEntries(ownLabels) }),
      annotations: {
        ...Object.fromEntries(others),
        [volumeAnnotation]: member,
        [volumeSourceAnnotation]: JSON.stringify(source),
      },
    },
  }
}

/** True for a Secret that kcp fills with a token: the token of another logical cluster is not valid here. */
function isAccountToken({ kind, type }: KubeObject): boolean {
  return kind === 'Secret' && type === 'kubernetes.io/service-account-token'
}

/** The object without the fields that tell where it runs, or where its data is. */
function withoutPlace(begun: KubeObject, was: KubeObject): KubeObject {
  const { kind } = begun
  if (workloadKindOfObject(begun) !== undefined) {
    // The status of a Job that has ended is the reason not to run it again.
    if (hasEnded(was) || kind === 'CronJob') return begun
    const { status: _, ...rest } = begun
    if (kind === 'Pod' && isJsonObject(rest['spec'])) {
      const { nodeName: _node, ...spec } = rest['spec']
      return { ...rest, spec, status: { phase: 'Pending', qosClass: qosOf(was) } }
    }
    return { ...rest, status: {} }
  }
  if (kind === 'PersistentVolumeClaim') {
    const { volumeName: _, ...spec } = specOf(begun)
    return { ...begun, spec, status: { phase: 'Pending' } }
  }
  if (kind === 'Service' || kind === 'Ingress') return { ...begun, status: { loadBalancer: {} } }
  return begun
}

function qosOf({ status }: KubeObject): unknown {
  return isJsonObject(status) ? (status['qosClass'] ?? 'BestEffort') : 'BestEffort'
}

/**
 * The object of a snapshot as it goes back into its logical cluster, where `now` has its place: what members and the
 * installation write about it stays as it is now.
 */
export function forSameCluster(object: KubeObject, now: KubeObject | undefined): KubeObject {
  const back = forAnotherCluster(object, new Map())
  if (now === undefined || now.metadata.uid !== object.metadata.uid) return back
  const annotations = Object.entries(now.metadata.annotations ?? {}).filter(([name]) => isOwnAnnotation(name))
  const finalizers = (now.metadata.finalizers ?? []).filter(isOwnFinalizer)
  const { metadata } = back
  const kept: KubeObject = {
    ...back,
    metadata: {
      ...metadata,
      ...(annotations.length > 0 && { annotations: { ...metadata.annotations, ...Object.fromEntries(annotations) } }),
      ...(finalizers.length > 0 && { finalizers: [...(metadata.finalizers ?? []), ...finalizers] }),
    },
  }
  if (isAccountToken(now) && now['data'] !== undefined) kept['data'] = now['data']
  if (workloadKindOfObject(now) === undefined && !placedKinds.has(now.kind)) return kept
  if (now['status'] !== undefined) kept['status'] = now['status']
  const volume = now.kind === 'PersistentVolumeClaim' ? specOf(now)['volumeName'] : undefined
  const node = now.kind === 'Pod' ? specOf(now)['nodeName'] : undefined
  if (volume !== undefined) kept['spec'] = { ...specOf(kept), volumeName: volume }
  if (node !== undefined) kept['spec'] = { ...specOf(kept), nodeName: node }
  return kept
}

/**
 * The fields of an object that `forSameCluster` reads of it, as an object; undefined if there are none. Of most objects
 * nothing stays.
 */
export function whatStays(now: KubeObject): KubeObject | undefined {
  const { apiVersion, kind, metadata, type, data, status } = now
  const { name = '', uid = '' } = metadata
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => isOwnAnnotation(key))
  const finalizers = (metadata.finalizers ?? []).filter(isOwnFinalizer)
  const isToken = isAccountToken(now)
  const isOfMembers = workloadKindOfObject(now) !== undefined || placedKinds.has(kind)
  if (annotations.length === 0 && finalizers.length === 0 && !isToken && !isOfMembers) return undefined
  const { volumeName, nodeName } = specOf(now)
  return {
    apiVersion,
    kind,
    metadata: { name, uid, annotations: Object.fromEntries(annotations), finalizers },
    ...(isToken && { type, ...(data !== undefined && { data }) }),
    ...(isOfMembers && { spec: { volumeName, nodeName }, ...(status !== undefined && { status }) }),
  }
}

/** Kinds besides workloads whose status comes from members. */
const placedKinds: ReadonlySet<string> = new Set(['PersistentVolumeClaim', 'Service', 'Ingress'])

function specOf({ spec }: KubeObject): Record<string, unknown> {
  return isJsonObject(spec) ? spec : {}
}

/** The value with every string that is the uid of an object of the snapshot replaced. Shares what does not change. */
function valueWithUids(value: unknown, uids: ReadonlyMap<string, string>): unknown {
  if (typeof value === 'string') return value.length === uidLength ? (uids.get(value) ?? value) : value
  if (Array.isArray(value)) {
    const items = value.map((item) => valueWithUids(item, uids))
    return items.some((item, i) => item !== value[i]) ? items : value
  }
  if (typeof value !== 'object' || value === null) return value
  let changed: JsonObject | undefined
  for (const [name, before] of Object.entries(value)) {
    const after = valueWithUids(before, uids)
    if (after !== before) putField((changed ??= { ...value } as JsonObject), name, after as JsonObject)
  }
  return changed ?? value
}

const uidLength = 36
