// The directory of logical clusters, filled by an informer on the LogicalCluster objects of the host or, without a
// host, of the logical cluster `root`.
import {
  clusterIdOf,
  rootClusterName,
  tryClusterName,
  type ClusterId,
  type ClusterName,
} from '#apimachinery/meta/index.ts'
import { tryPodSecurityLevel } from '#apimachinery/pod-security/index.ts'
import { createInformer, type DeepReadonly, type KubeClient } from '#client/index.ts'
import {
  filledAnnotation,
  fillingOf,
  labelsInTree,
  logicalClusters,
  restoringAnnotation,
  sleepStepMs,
  type ClusterSleep,
  type ClusterSleepStatus,
  transferAnnotation,
  transferOf,
  type LogicalCluster as LogicalClusterObject,
} from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { placeInTree } from '#virtualapi/request/hierarchy.ts'
import type { ClusterDirectory, LogicalCluster, OwnerSubject, SleepRules } from '#virtualapi/request/logical-cluster.ts'

export interface InformedDirectory extends ClusterDirectory {
  /**
   * Calls the listener with the parent of a LogicalCluster after each change of its object, its status included.
   * Returns the function that unsubscribes.
   */
  onChildChange(listener: (parent: string) => void): () => void
  /**
   * Fills the directory from the LogicalCluster objects of `client` until `signal` aborts. Call it once, when the API
   * behind `client` can respond. In embedded mode this API is the server itself, which needs the directory before it
   * can start.
   */
  follow(source: { readonly client: KubeClient; readonly log: Logger; readonly signal: AbortSignal }): FollowedDirectory
}

export interface FollowedDirectory extends AsyncDisposable {
  /** Resolves once all existing LogicalClusters are known. Rejects with signal.reason. */
  synced(signal: AbortSignal): Promise<void>
}

type Listener = Parameters<ClusterDirectory['onChange']>[0]

/**
 * The logical cluster `root` of an installation without a host. Its id is derived from the id of the data directory.
 */
export function rootCluster({
  instanceId,
  creationTimestamp,
}: {
  readonly instanceId: string
  readonly creationTimestamp: string
}): LogicalCluster {
  return {
    name: rootClusterName,
    id: clusterIdOf(instanceId),
    uid: instanceId,
    creationTimestamp,
    owners: [],
    deleting: false,
    // Only the installation's admins write to the logical cluster `root`, and no member runs its pods.
    podSecurity: 'privileged',
  }
}

/** A directory that contains only `root` (embedded mode), or nothing, until it follows an API. */
export function createDirectory({ root }: { readonly root?: LogicalCluster } = {}): InformedDirectory {
  return new DirectoryOfInformer(root)
}

class DirectoryOfInformer implements InformedDirectory {
  readonly #root: LogicalCluster | undefined
  readonly #byName = new Map<ClusterName, LogicalCluster>()
  readonly #byId = new Map<ClusterId, LogicalCluster>()
  /**
   * All LogicalClusters of the API by id, served or not. Two LogicalClusters have the same id only after a hash
   * collision.
   */
  readonly #candidates = new Map<ClusterId, LogicalCluster[]>()
  readonly #listeners = new Set<Listener>()
  readonly #childListeners = new Set<(parent: string) => void>()
  /** Labels of LogicalClusters themselves, where they may differ from those with the labels of ancestors. */
  readonly #ownLabels = new Map<ClusterName, LogicalCluster['labels']>()
  /** The children of each parent; logical clusters without a parent are in no set. */
  readonly #children = new Map<ClusterName, Set<ClusterName>>()

  constructor(root: LogicalCluster | undefined) {
    this.#root = root
    if (root !== undefined) this.#put(root)
  }

  byName(name: ClusterName): LogicalCluster | undefined {
    return this.#byName.get(name)
  }
  byId(id: ClusterId): LogicalCluster | undefined {
    return this.#byId.get(id)
  }
  all(): Iterable<LogicalCluster> {
    return this.#byName.values()
  }
  *childrenOf(name: ClusterName): Generator<LogicalCluster> {
    for (const child of this.#children.get(name) ?? []) {
      const found = this.#byName.get(child)
      if (found !== undefined) yield found
    }
  }
  onChange(listener: Listener): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  onChildChange(listener: (parent: string) => void): () => void {
    this.#childListeners.add(listener)
    return () => void this.#childListeners.delete(listener)
  }

  follow({ client, log, signal }: Parameters<InformedDirectory['follow']>[0]): FollowedDirectory {
    const informer = createInformer<LogicalClusterObject>({
      client,
      gvr: logicalClusters,
      transform: withoutDetails,
      log,
      signal,
    })
    const stop = informer.onChange(({ before, after }) => {
      const object = after ?? before
      const name = tryClusterName(object?.metadata.name ?? '')
      if (name === undefined || name === this.#root?.name) {
        log.warn('a LogicalCluster is not served: its name is not a DNS label, or is that of the built-in root', {
          name: object?.metadata.name,
        })
        return
      }
      const [was, is] = [before, after].map((object) =>
        object === undefined ? undefined : logicalClusterOf(name, object),
      )
      if (was !== undefined && was.id !== is?.id) this.#update(was, undefined, log)
      if (is !== undefined) this.#update(is, is, log)
      for (const parent of new Set([was?.parent, is?.parent]))
        if (parent !== undefined) for (const listener of this.#childListeners) listener(parent)
    })
    return {
      synced: (until) => informer.synced(until),
      [Symbol.asyncDispose]: () => {
        stop()
        return informer[Symbol.asyncDispose]()
      },
    }
  }

  /**
   * Updates the candidates for an id; `now` is undefined if `subject` is gone. Ids are 49 bits of a hash: if two
   * LogicalClusters have the same id, only the older one is served; otherwise one would read the other's data. The
   * order in which they become known does not matter.
   */
  #update(subject: LogicalCluster, now: LogicalCluster | undefined, log: Logger): void {
    const { id } = subject
    const others = (this.#candidates.get(id) ?? []).filter((candidate) => candidate.name !== subject.name)
    const candidates = (now === undefined ? others : [...others, now]).sort(older)
    if (candidates.length === 0) this.#candidates.delete(id)
    else this.#candidates.set(id, candidates)
    if (this.#root?.id === id) {
      log.error('a LogicalCluster is refused: its id is that of "root"', { name: subject.name, id })
      return
    }
    const [winner, ...refused] = candidates
    for (const { name } of refused) log.error('a LogicalCluster is refused: an older one has the same id', { name, id })
    const holder = this.#byId.get(id)
    if (holder !== undefined && holder.name !== winner?.name) this.#remove(holder)
    if (winner !== undefined) this.#putWithLabels(winner)
  }

  /** Puts a logical cluster with the labels of its ancestors, and those below it whose labels change by that. */
  #putWithLabels(own: LogicalCluster): void {
    if (own.parent !== undefined || own.labels !== undefined) this.#ownLabels.set(own.name, own.labels)
    else this.#ownLabels.delete(own.name)
    const { labels: _labels, ...rest } = own
    const labels = labelsInTree(own, (name) => {
      const above = this.#byName.get(name as ClusterName)
      return above && { ...above, labels: this.#ownLabels.get(above.name) }
    })
    const cluster = labels === undefined ? rest : { ...rest, labels }
    if (isSame(cluster, this.#byId.get(own.id))) return
    const before = this.#byId.get(own.id)?.labels
    this.#put(cluster)
    if (JSON.stringify(before) === JSON.stringify(labels)) return
    for (const child of this.childrenOf(own.name)) {
      const { labels: _, ...known } = child
      const childLabels = this.#ownLabels.get(child.name)
      this.#putWithLabels(childLabels === undefined ? known : { ...known, labels: childLabels })
    }
  }

  #put(cluster: LogicalCluster): void {
    const before = this.#byId.get(cluster.id)
    this.#leaveParent(before)
    if (cluster.parent !== undefined) {
      const siblings = this.#children.get(cluster.parent) ?? new Set<ClusterName>()
      this.#children.set(cluster.parent, siblings.add(cluster.name))
    }
    this.#byName.set(cluster.name, cluster)
    this.#byId.set(cluster.id, cluster)
    this.#notify({ ...(before === undefined ? {} : { before }), after: cluster })
  }

  #remove(cluster: LogicalCluster): void {
    this.#leaveParent(cluster)
    this.#ownLabels.delete(cluster.name)
    this.#byName.delete(cluster.name)
    this.#byId.delete(cluster.id)
    this.#notify({ before: cluster })
  }

  #leaveParent({ name, parent }: Partial<LogicalCluster> = {}): void {
    if (name === undefined || parent === undefined) return
    const siblings = this.#children.get(parent)
    siblings?.delete(name)
    if (siblings?.size === 0) this.#children.delete(parent)
  }

  #notify(change: Parameters<Listener>[0]): void {
    for (const listener of this.#listeners) listener(change)
  }
}

/** Drops fields that the directory does not read, to save memory: there are thousands of LogicalClusters. */
function withoutDetails({ apiVersion, kind, metadata, spec, status }: LogicalClusterObject): LogicalClusterObject {
  const { name, uid, labels, resourceVersion, creationTimestamp, deletionTimestamp } = metadata
  const annotations = fillingAnnotations(metadata.annotations)
  const object = { name, uid, labels, annotations, resourceVersion, creationTimestamp, deletionTimestamp }
  const kept = Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined))
  return {
    apiVersion,
    kind,
    metadata: { ...kept, name },
    spec: {
      ...(spec?.owners === undefined ? {} : { owners: spec.owners }),
      ...(spec?.podSecurity === undefined ? {} : { podSecurity: spec.podSecurity }),
      ...(spec?.parentRef === undefined ? {} : { parentRef: spec.parentRef }),
      ...(spec?.limits === undefined ? {} : { limits: spec.limits }),
      ...(spec?.inherit === undefined ? {} : { inherit: spec.inherit }),
      ...(spec?.access === undefined ? {} : { access: spec.access }),
      ...(spec?.authentication === undefined ? {} : { authentication: spec.authentication }),
      ...(spec?.audit === undefined ? {} : { audit: spec.audit }),
      ...(spec?.source === undefined ? {} : { source: spec.source }),
      ...(spec?.sleep === undefined ? {} : { sleep: spec.sleep }),
    },
    ...(status?.sleep?.asleepSince !== undefined && { status: { sleep: sleepingSince(status.sleep) } }),
  }
}

/** Without the time of the last request, which changes all the time. */
function sleepingSince({ asleepSince = '', reason = '' }: ClusterSleepStatus): ClusterSleepStatus {
  return { asleepSince, reason }
}

const readAnnotations = [filledAnnotation, restoringAnnotation, transferAnnotation]

/** The annotations that say whether its objects are all there and here; undefined if it has none. */
function fillingAnnotations(annotations: Readonly<Record<string, string>> = {}): Record<string, string> | undefined {
  const found = Object.entries(annotations).filter(([key]) => readAnnotations.includes(key))
  return found.length === 0 ? undefined : Object.fromEntries(found)
}

/** True if no field that the server reads has changed, as after a status update. */
function isSame(a: LogicalCluster, b: LogicalCluster | undefined): boolean {
  return b !== undefined && JSON.stringify(a) === JSON.stringify(b)
}

function older(a: LogicalCluster, b: LogicalCluster): number {
  if (a.creationTimestamp !== b.creationTimestamp) return a.creationTimestamp < b.creationTimestamp ? -1 : 1
  return a.uid < b.uid ? -1 : 1
}

function logicalClusterOf(name: ClusterName, object: DeepReadonly<LogicalClusterObject>): LogicalCluster {
  const { uid = '', labels, creationTimestamp = '', deletionTimestamp } = object.metadata
  const owners = object.spec?.owners ?? []
  const podSecurity = tryPodSecurityLevel(object.spec?.podSecurity?.enforce ?? '')
  const access = object.spec?.access?.serviceAccountRef
  const issuers = object.spec?.authentication?.jwt
  const filling = fillingOf(object)
  const transfer = transferOf(object)
  return {
    name,
    id: clusterIdOf(uid),
    uid,
    creationTimestamp,
    owners: owners.map(({ kind, name, namespace }): OwnerSubject => ({
      kind,
      name,
      ...(namespace === undefined ? {} : { namespace }),
    })),
    deleting: deletionTimestamp !== undefined,
    ...(labels === undefined ? {} : { labels }),
    ...(podSecurity === undefined ? {} : { podSecurity }),
    ...(access && { access: { namespace: access.namespace, name: access.name } }),
    ...(filling !== undefined && { filling }),
    ...(object.spec?.audit !== undefined && { audit: object.spec.audit }),
    ...(transfer !== undefined && { transfer }),
    ...(issuers !== undefined && issuers.length > 0 && { authentication: issuers }),
    ...(object.spec?.sleep && { sleep: sleepRules(object.spec.sleep, object.status?.sleep) }),
    ...placeInTree(object.spec),
  }
}

function sleepRules(spec: DeepReadonly<ClusterSleep>, status: DeepReadonly<ClusterSleepStatus> = {}): SleepRules {
  const { serviceAccounts, ignoreUsers, ignoreGroups } = spec.activity ?? {}
  const stepMs = sleepStepMs(spec)
  // One that is held asleep is woken by hand alone.
  const { asleepSince, reason } = spec.asleep === true ? {} : status
  return {
    ...(stepMs !== undefined && { stepMs }),
    ...(asleepSince !== undefined && { asleepSince, ...(reason === 'Idle' && { isIdle: true as const }) }),
    ...(serviceAccounts === 'Count' && { countsAccounts: true as const }),
    ...(ignoreUsers && { ignoreUsers }),
    ...(ignoreGroups && { ignoreGroups }),
  }
}
