// The copy of an object as a member should have it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { conflict } from '#apimachinery/status/index.ts'
import { keyFor, type DeepReadonly } from '#client/index.ts'
import { appliedAnnotation, contentHash, placedOn, templateOf, type MemberClass } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import { ownerCluster, type Scope } from '#syncer/context/scope.ts'
import { inMember } from '#syncer/context/upstream.ts'
import { isScaled } from '#syncer/rules/scaled.ts'
import type { SyncedObject } from '#syncer/rules/synced-object.ts'
import type { PodContext } from '#syncer/transform/pod-template.ts'
import type { PodSpec } from '#syncer/transform/pod-types.ts'
import { priorityClassIn } from '#syncer/transform/priority-class.ts'

/** The copy that the member should have, with its hash in an annotation. `current`: the copy that it has now. */
export function desiredCopy(synced: SyncedObject, object: CachedObject, current: CachedObject | undefined): KubeObject {
  const { context, row, member, cluster, namespace, clusterId } = synced
  if (clusterId === undefined)
    throw conflict(synced.gvr, synced.name, `the id of logical cluster "${cluster}" is not known yet`)
  const automount = row.workload ? accountAutomount(synced, object) : undefined
  const podContext = {
    ...context.podContext(cluster, clusterId, namespace),
    ...(automount !== undefined && { accountAutomount: automount }),
    ...(row.workload && priorityClassFor(synced, object)),
  }
  const decided = placedOn(object as KubeObject)[member.name]
  const copy = row.down(object, ownerCluster(synced, clusterId), podContext, {
    copy: current,
    isLeaving: decided
      ? ['Draining', 'Terminating', 'Forwarding'].includes(decided.state)
      : row.resource === 'services' && synced.adopted !== undefined && hasMovingWorkload(synced),
    isScaled: row.workload?.paths.replicas !== undefined && isScaled(synced, object),
    ...(decided && { decided }),
  })
  const desired = row.divided?.(copy, synced.view, member.name) ?? copy
  desired.metadata.annotations = { ...desired.metadata.annotations, [appliedAnnotation]: contentHash(desired) }
  return desired
}

/** Whether another member has, or gets, a workload of the namespace, or the workload is divided. */
function hasMovingWorkload({ context, cluster, namespace, member }: Scope): boolean {
  for (const index of context.upstream.workloadsByMember)
    for (const workload of index.of(inMember(`${cluster}|${namespace}`, member.name))) {
      const copies = placedOn(workload as KubeObject)
      const isLeaving = ['Draining', 'Terminating', 'Forwarding'].includes(copies[member.name]?.state ?? '')
      if (isLeaving || copies[member.name]?.replicas !== undefined) return true
      if (Object.keys(copies).some((name) => name !== member.name)) return true
    }
  return false
}

/** The member's PriorityClass for the class in the template; empty if that class or the member's are not known. */
function priorityClassFor(
  { context, member, cluster }: Scope,
  object: CachedObject,
): Pick<PodContext, 'priorityClass'> {
  const name = podSpecOf(object)?.priorityClassName
  const wanted = name ? context.upstream.priorityClasses.store.get(keyFor({ cluster, name })) : undefined
  const classes = member.classesOf?.('PriorityClass')
  if (!name || wanted === undefined || classes === undefined) return {}
  const { value, preemptionPolicy } = wanted as Pick<MemberClass, 'value' | 'preemptionPolicy'>
  const asked = { name, ...(value !== undefined && { value }), ...(preemptionPolicy && { preemptionPolicy }) }
  return { priorityClass: priorityClassIn(classes, asked) ?? null }
}

function accountAutomount(scope: Scope, object: CachedObject): boolean | undefined {
  const name = podSpecOf(object)?.serviceAccountName ?? 'default'
  const account = scope.upstream('serviceaccounts', name)
  return account?.['automountServiceAccountToken'] as boolean | undefined
}

/** The spec of the pods of a workload. */
export function podSpecOf(workload: CachedObject): DeepReadonly<PodSpec> | undefined {
  return (templateOf(workload) as { spec?: DeepReadonly<PodSpec> } | undefined)?.spec
}
