// The owner upstream of an object that a controller of a member created.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import { workloadKinds } from '../crds/index.ts'
import {
  downstreamObject,
  downstreamNamespaceOf,
  locatorOf,
  upstreamObject,
  type SyncContext,
  type Visit,
} from './sync-context.ts'
import { templateHashLabel, type OwnerUp } from './transform/up.ts'
import { jobLabels } from './transform/workload-down.ts'
import { ownerName } from './workload-owner.ts'

type CachedObject = DeepReadonly<KubeObject>
type UpstreamNamespace = Pick<Visit, 'cluster' | 'namespace'>

/** The controlling owner upstream; undefined if the object has none in the member, or it is not upstream yet. */
export function ownerUpstream(context: SyncContext, visit: UpstreamNamespace, live: CachedObject): OwnerUp | undefined {
  const controller = live.metadata.ownerReferences?.find((owner) => owner.controller === true)
  const kind = workloadKinds.find((row) => row.kind === controller?.kind && row.apiVersion === controller.apiVersion)
  if (controller === undefined || kind === undefined) return undefined
  const { cluster, namespace } = visit
  const found =
    kind.kind === 'ReplicaSet' && !isCopy(context, visit, controller.name)
      ? context.historyReportedAs(cluster, namespace, controller.name)
      : upstreamObject(context, kind.gvr.resource, { cluster, namespace, name: controller.name })
  if (found === undefined) return undefined
  const { name = '', uid = '', labels } = found.metadata
  const { apiVersion } = kind
  const hash = labels?.[templateHashLabel]
  return {
    reference: { apiVersion, kind: kind.kind, name, uid, controller: true, blockOwnerDeletion: true },
    labels:
      kind.kind === 'Job'
        ? Object.fromEntries(jobLabels.map((label) => [label, uid]))
        : hash !== undefined && kind.kind === 'ReplicaSet'
          ? { [templateHashLabel]: hash }
          : {},
  }
}

/** True for a ReplicaSet in the member that its tenant made, without a Deployment. */
function isCopy(context: SyncContext, visit: UpstreamNamespace, name: string): boolean {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined) return false
  return locatorOf(downstreamObject(context, 'replicasets', memberNamespace, name)) !== undefined
}

/**
 * The upstream workload to which an object in the member belongs, through the objects between them: the ReplicaSet of a
 * Deployment, the Job of a CronJob.
 */
export function workloadOfLive(
  context: SyncContext,
  visit: UpstreamNamespace,
  live: CachedObject,
): CachedObject | undefined {
  const memberNamespace = downstreamNamespaceOf(context, visit)
  if (memberNamespace === undefined) return undefined
  const { cluster, namespace } = visit
  // Four: the longest chain is claim, pod, Job, CronJob.
  for (let depth = 0, one: CachedObject | undefined = live; depth < 4 && one !== undefined; depth++) {
    const locator = locatorOf(one)
    const own = workloadKinds.find(({ kind }) => kind === one?.kind)
    if (locator !== undefined && own !== undefined)
      return upstreamObject(context, own.gvr.resource, { cluster, namespace, name: locator.name })
    const owner: CachedObject = one
    const kind = workloadKinds.find((row) => ownerName(owner, row) !== undefined)
    one = kind && downstreamObject(context, kind.gvr.resource, memberNamespace, ownerName(owner, kind) ?? '')
  }
  return undefined
}
