// Changes in logical clusters, as reconciles.
import { parseKey } from '#client/index.ts'
import { adoptedNamespaceAnnotation, isPlaceable, isWorkloadResource, workloadKinds } from '#crds/index.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import { Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { syncedKindOf } from '#syncer/rules/synced-kinds.ts'
import { madeKindOf } from '#syncer/up/made.ts'
import { isEnding, objectOf, type ObjectChange } from './change.ts'
import { contentChanged, isRelevant } from './content.ts'
import { serviceChanged, shownPodChanged, sliceChanged } from './services.ts'
import { reconcileWhole } from './whole-namespace.ts'
import { copyChanged, historyChanged, isConcerned, orphanChanged, workloadChanged } from './workloads.ts'

/** What a change of an object triggers in its namespace. */
type Trigger = (scope: Scope, change: ObjectChange, name: string) => void

/** By resource: objects that are not copied into the member, unless a workload's row in the table of kinds says so. */
const uncopied: Readonly<Partial<Record<ResourceName, Trigger>>> = {
  replicasets: historyChanged,
  endpointslices: sliceChanged,
  namespaces: namespaceChanged,
}

/** By resource: what a change of a copied object triggers besides its own copy. */
const besides: Readonly<Partial<Record<ResourceName, Trigger>>> = {
  configmaps: rootCaChanged,
  services: serviceChanged,
  ingresses: (scope, change) => contentChanged(scope, 'ingresses', change),
  serviceaccounts: (scope, change) => contentChanged(scope, 'serviceaccounts', change),
  persistentvolumeclaims: (scope, change) => contentChanged(scope, 'persistentvolumeclaims', change),
}

/** Asks for the reconciles that a change in a logical cluster causes in this member. */
export function upstreamChanged(context: SyncContext, resource: ResourceName, change: ObjectChange): void {
  const { cluster = '', namespace = '', name } = parseKey(change.key)
  const object = objectOf(change)
  if (object === undefined) return
  const scope = new Scope(context, { cluster, namespace })
  if (change.isUnlisted && isWorkloadResource(resource)) context.guard.vanished()
  if (resource === 'pods') shownPodChanged(scope, change)
  if (isWorkloadResource(resource)) orphanChanged(scope, resource, change)
  if (isWorkloadResource(resource) && isPlaceable(object)) {
    if (isConcerned(scope, resource, name, change)) workloadChanged(scope, resource, change)
    return
  }
  if ((resource === 'pods' || madeKindOf(resource) !== undefined) && copyChanged(scope, resource, change)) return
  const other = uncopied[resource]
  if (other !== undefined) {
    other(scope, change, name)
    return
  }
  besides[resource]?.(scope, change, name)
  if (syncedKindOf(resource)?.follows !== 'decision' && isRelevant(scope, resource, name)) scope.enqueue(resource, name)
}

function namespaceChanged({ context, cluster }: Scope, { before, after }: ObjectChange, name: string): void {
  const scope = new Scope(context, { cluster, namespace: name })
  if (after === undefined) context.views.forget(cluster, name)
  if (isEnding(after) && !isEnding(before)) reconcileWorkloads(scope)
  const [was, is] = [before, after].map(adoptionIn)
  if (before !== undefined && after !== undefined && was !== is) reconcileWhole(scope)
  scope.enqueueNamespace()
}

/** The record of an adoption, as text. */
function adoptionIn(namespace: ObjectChange['after']): string | undefined {
  return namespace?.metadata.annotations?.[adoptedNamespaceAnnotation]
}

/** The workloads of a namespace that is being deleted: their copies go at once. */
function reconcileWorkloads(scope: Scope): void {
  for (const { gvr } of workloadKinds)
    for (const { metadata } of scope.allUpstream(gvr.resource)) scope.enqueueCopy(gvr.resource, metadata.name)
}

function rootCaChanged(scope: Scope, _change: ObjectChange, name: string): void {
  if (name === 'kube-root-ca.crt') scope.enqueueNamespace()
}
