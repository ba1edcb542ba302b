// Turns changes of the inputs into keys of workloads to decide about again, limited to the namespace or logical cluster
// that a change concerns.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { clusterInKey, namespaceKeyOf, parseKey, type DeepReadonly } from '#client/index.ts'
import {
  asleepMessage,
  inheritLabel,
  isPlaceable,
  matches,
  placedOnAnnotation,
  transferOf,
  type LogicalCluster,
  type Placement,
  type VolumeMove,
  volumeConsentAnnotation,
} from '#crds/index.ts'
import { memberOfClaim, storageClassOf, usesClaim } from '#placement/index.ts'
import { selects } from './copy-seen.ts'
import { placedLimitsOf } from './placed-limits.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { workloadKey } from './workload-key.ts'

/** Calls `enqueue` with the keys of all workloads, then on every change. Returns the function that ends it. */
export function enqueueChanges(inputs: PlacementInputs, enqueue: (key: string) => void): () => void {
  const enqueueAll = (keys: Iterable<string>): void => {
    for (const key of keys) enqueue(key)
  }
  let isFrozen = inputs.isFailoverFrozen
  const unsubscribe = [
    ...inputs.workloads.map(({ kind, informer }) =>
      informer.onChange(({ key, before, after }) => {
        const object = after ?? before
        if (object === undefined || !isPlaceable(object)) return
        enqueue(workloadKey(kind, key))
        // It may have left room for others that wait for a limit.
        enqueueAll(inputs.placedLimits.waitingFor(clusterInKey(key), woken))
        // Siblings may wait for this workload before they drain.
        if (before?.metadata.annotations?.[placedOnAnnotation] !== after?.metadata.annotations?.[placedOnAnnotation])
          enqueueAll(inputs.workloadKeysWaitingIn(namespaceKeyOf(key)))
      }),
    ),
    inputs.services.onChange(({ key, before, after }) => {
      const versions = [before, after].filter((service) => service !== undefined)
      enqueueAll(
        inputs.workloadKeysInNamespace(namespaceKeyOf(key), (workload) =>
          versions.some((service) => selects(service, workload)),
        ),
      )
    }),
    inputs.claims.onChange(({ key, before, after }) => {
      const [was, is] = [before, after].map((claim) => claim && memberOfClaim(claim))
      const [agreed, agrees] = [before, after].map((claim) => claim?.metadata.annotations?.[volumeConsentAnnotation])
      if (was === is && agreed === agrees && storageClassOf(before) === storageClassOf(after)) return
      const versions = [before, after].filter((claim) => claim !== undefined)
      enqueueAll(
        inputs.workloadKeysInNamespace(namespaceKeyOf(key), (workload) =>
          versions.some((claim) => usesClaim(workload, claim)),
        ),
      )
      // Workloads with the claim may stay where they are now, and their siblings need not wait.
      enqueueAll(inputs.workloadKeysWaitingIn(namespaceKeyOf(key)))
    }),
    inputs.volumeMoves.onChange(({ before, after }) => {
      const { spec } = after ?? before ?? {}
      if (spec === undefined || toldOf(before) === toldOf(after)) return
      const namespaceKey = `${spec.logicalCluster}|${spec.namespace}`
      const moving = { metadata: { name: spec.claim } }
      enqueueAll(inputs.workloadKeysInNamespace(namespaceKey, (workload) => usesClaim(workload, moving)))
    }),
    inputs.namespaces.onChange(({ key }) => {
      const { cluster = '', name } = parseKey(key)
      enqueueAll(inputs.workloadKeysInNamespace(`${cluster}|${name}`))
    }),
    // Copies stay where they are, so a change of a member concerns the workloads that have something there and the
    // workloads that are not settled. Heartbeats of the member change no decision.
    inputs.members.onChange(({ key, before, after }) => {
      if (decisiveFieldsOf(before) === decisiveFieldsOf(after)) return
      enqueueAll(inputs.workloadKeysConcernedBy(key))
      // Whether failover is frozen depends on how many of all members do not answer. Few changes of one decide it:
      // where many members come and go, each of these changes would otherwise concern the workloads of all that are
      // gone.
      if (isFrozen === inputs.isFailoverFrozen) return
      isFrozen = inputs.isFailoverFrozen
      for (const lost of inputs.unreachable) if (lost !== key) enqueueAll(inputs.workloadKeysIn(lost))
    }),
    inputs.tenantPlacements.onChange(({ key, before, after }) => {
      const cluster = clusterInKey(key)
      const isInherited = [before, after].some((one) => one?.metadata.labels?.[inheritLabel] === 'true')
      for (const name of isInherited ? inputs.subtreeOf(cluster) : [cluster])
        enqueueAll(inputs.workloadKeysInCluster(name))
    }),
    inputs.adminPlacements.onChange(({ before, after }) => {
      for (const cluster of inputs.clusters.store.list()) {
        const labels = inputs.labelsOf(cluster.metadata.name)
        if (appliesTo(before, labels) || appliesTo(after, labels))
          enqueueAll(inputs.workloadKeysInCluster(cluster.metadata.name))
      }
    }),
    inputs.clusters.onChange(({ key, before, after }) => {
      const isMoved = before?.spec?.parentRef?.name !== after?.spec?.parentRef?.name
      const isRelabelled = JSON.stringify(before?.metadata.labels) !== JSON.stringify(after?.metadata.labels)
      const isLimited = placedLimitsOf(before) !== placedLimitsOf(after)
      const isOpened = before !== undefined && isArriving(before) && after !== undefined && !isArriving(after)
      if (asleepMessage(before?.status?.sleep) !== asleepMessage(after?.status?.sleep))
        enqueueAll(inputs.workloadKeysInCluster(key))
      if (before === undefined && !isLimited) enqueueAll(inputs.workloadKeysInCluster(key))
      else if (isMoved || isRelabelled || isLimited || isOpened)
        for (const name of inputs.subtreeOf(key)) enqueueAll(inputs.workloadKeysInCluster(name))
    }),
  ]
  return () => {
    for (const end of unsubscribe) end()
  }
}

/** How many of the workloads that wait for a limit are looked at after a change; the others follow, or look themselves. */
const woken = 16

/** What workloads tell of a move of their volumes, as text. */
function toldOf(move: DeepReadonly<VolumeMove> | undefined): string {
  const { phase, summary, conditions = [] } = move?.status ?? {}
  return JSON.stringify([phase, summary, conditions.find(({ type }) => type === 'Progressing')])
}

/** True while a logical cluster comes from another installation: what it runs still runs there. */
export function isArriving(cluster: DeepReadonly<LogicalCluster>): boolean {
  return transferOf(cluster)?.role === 'target'
}

/** Whether an admin's Placement selects this logical cluster. */
function appliesTo(
  rule: DeepReadonly<Placement> | undefined,
  labels: Readonly<Record<string, string>> | undefined,
): boolean {
  return rule !== undefined && matches(rule.spec?.logicalClusterSelector, labels)
}

/** The fields of a MemberCluster that decisions depend on, as text. */
function decisiveFieldsOf(member: DeepReadonly<KubeObject> | undefined): string {
  const {
    conditions = [],
    allocatable,
    classes,
    unsupportedFields,
  } = (member?.['status'] ?? {}) as {
    conditions?: { type: string; status: string }[]
    allocatable?: object
    classes?: object
    unsupportedFields?: object
  }
  return JSON.stringify([
    member?.['spec'],
    member?.metadata.labels,
    member?.metadata.deletionTimestamp,
    allocatable,
    classes,
    unsupportedFields,
    ...['Ready', 'Reachable'].map((wanted) => conditions.find(({ type }) => type === wanted)?.status),
  ])
}
