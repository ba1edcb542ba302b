// The owner upstream of an object that a controller of a member created.
import { workloadKindOfObject } from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { asController } from '#syncer/context/owners.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { controllerHere, isShownFrom, workloadOfLive } from '#syncer/rules/entitlement.ts'
import { templateHashLabel, type OwnerUp } from '#syncer/transform/up.ts'
import { jobLabels } from '#syncer/transform/workload-down.ts'

/** The owner upstream of an object in the member, and the workload to which both belong. */
export interface Origin {
  readonly workload: CachedObject
  /** The workload itself, or what the member made of it. */
  readonly found: CachedObject
  readonly owner: OwnerUp
}

/**
 * Undefined if the object has no controller in the member, if the member does not have its workload, or while the owner
 * is not upstream yet.
 */
export function originUpstream(scope: Scope, live: CachedObject): Origin | undefined {
  const controller = controllerHere(scope, live)
  const workload = controller && workloadOfLive(scope, controller)
  const kind = controller && workloadKindOfObject(controller)
  if (controller === undefined || workload === undefined || kind === undefined) return undefined
  const found = locatorOf(controller) === undefined ? madeUpstream(scope, controller, workload) : workload
  if (found === undefined) return undefined
  const { uid = '', labels } = found.metadata
  const hash = labels?.[templateHashLabel]
  const owner = {
    reference: asController(found),
    labels:
      kind.kind === 'Job'
        ? Object.fromEntries(jobLabels.map((label) => [label, uid]))
        : hash !== undefined && kind.kind === 'ReplicaSet'
          ? { [templateHashLabel]: hash }
          : {},
  }
  return { workload, found, owner }
}

/**
 * The upstream copy of an object that the member made of the workload. ReplicaSets of one template have another name in
 * each member.
 */
function madeUpstream(scope: Scope, made: CachedObject, workload: CachedObject): CachedObject | undefined {
  const { name = '', uid } = made.metadata
  if (made.kind === 'ReplicaSet') {
    const found = scope.historyReportedAs(name)
    const isOfWorkload = found?.metadata.ownerReferences?.some((owner) => owner.uid === workload.metadata.uid)
    return isOfWorkload || found === workload ? found : undefined
  }
  const resource = workloadKindOfObject(made)?.gvr.resource
  const found = resource && scope.upstream(resource, name)
  return found && isShownFrom(scope, found, uid) ? found : undefined
}
