// The owner upstream of an object that a controller of a member created.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { workloadKindOfObject } from '#crds/index.ts'
import { controllerHere, isShownFrom, workloadOfLive } from '#syncer/rules/entitlement.ts'
import { locatorOf, upstreamObject, type SyncContext, type Visit } from '#syncer/context/sync-context.ts'
import { templateHashLabel, type OwnerUp } from '#syncer/transform/up.ts'
import { jobLabels } from '#syncer/transform/workload-down.ts'

type CachedObject = DeepReadonly<KubeObject>
type UpstreamNamespace = Pick<Visit, 'cluster' | 'namespace'>

/** The owner upstream of an object in the member, and the workload to which both belong. */
export interface Origin {
  readonly workload: CachedObject
  /** The workload itself, or what the member made of it. */
  readonly found: CachedObject
  readonly owner: OwnerUp
}

/** Undefined if the object has no controller in the member, if the member does not have its workload, or while the owner is not upstream yet. */
export function originUpstream(context: SyncContext, where: UpstreamNamespace, live: CachedObject): Origin | undefined {
  const controller = controllerHere(context, where, live)
  const workload = controller && workloadOfLive(context, where, controller)
  const kind = controller && workloadKindOfObject(controller)
  if (controller === undefined || workload === undefined || kind === undefined) return undefined
  const found = locatorOf(controller) === undefined ? madeUpstream(context, where, controller, workload) : workload
  if (found === undefined) return undefined
  const { name = '', uid = '', labels } = found.metadata
  const hash = labels?.[templateHashLabel]
  const owner = {
    reference: { apiVersion: kind.apiVersion, kind: kind.kind, name, uid, controller: true, blockOwnerDeletion: true },
    labels:
      kind.kind === 'Job'
        ? Object.fromEntries(jobLabels.map((label) => [label, uid]))
        : hash !== undefined && kind.kind === 'ReplicaSet'
          ? { [templateHashLabel]: hash }
          : {},
  }
  return { workload, found, owner }
}

/** What the member made of the workload, as it is upstream. ReplicaSets of one template have another name in each member. */
function madeUpstream(
  context: SyncContext,
  { cluster, namespace }: UpstreamNamespace,
  made: CachedObject,
  workload: CachedObject,
): CachedObject | undefined {
  const { name = '', uid } = made.metadata
  if (made.kind === 'ReplicaSet') {
    const found = context.historyReportedAs(cluster, namespace, name)
    const isOfWorkload = found?.metadata.ownerReferences?.some((owner) => owner.uid === workload.metadata.uid)
    return isOfWorkload ? found : undefined
  }
  const resource = workloadKindOfObject(made)?.gvr.resource
  const found = resource && upstreamObject(context, resource, { cluster, namespace, name })
  return found && isShownFrom(context, found, uid) ? found : undefined
}
