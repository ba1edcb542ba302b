// Changes of what a namespace has in the member, as reconciles of the objects that come or go with it.
import { memberAnnotation } from '#crds/index.ts'
import { isClaimIn, type ContentChange } from '#syncer/context/namespace-view.ts'
import { asOrdinalClaim } from '#syncer/context/references.ts'
import type { ResourceName } from '#syncer/context/resources.ts'
import { Scope } from '#syncer/context/scope.ts'
import type { ContentResource } from '#syncer/context/views.ts'
import { syncedKindOf, syncedKinds } from '#syncer/rules/synced-kinds.ts'

/** Reconciles what the change of an object brings into the member or out of it. */
export function contentChanged(scope: Scope, resource: ContentResource, change: ContentChange): void {
  const { context, cluster, namespace } = scope
  const changes = context.views.change(cluster, namespace, resource, change)
  let hasOrdinalClaims = false
  for (const reference of changes.references) {
    const [resource, name] = reference.split('/') as [ResourceName, string]
    if (name.endsWith('*')) hasOrdinalClaims = true
    else scope.enqueue(resource, name)
  }
  if (hasOrdinalClaims)
    for (const { metadata } of scope.allUpstream('persistentvolumeclaims'))
      if (asOrdinalClaim(metadata.name ?? '') !== undefined && metadata.annotations?.[memberAnnotation] === undefined)
        scope.enqueue('persistentvolumeclaims', metadata.name)
  for (const changed of changes.namespaces) reconcileFollowers(new Scope(context, { cluster, namespace: changed }))
}

/** Reconciles everything that is in a member because its namespace is. */
function reconcileFollowers(scope: Scope): void {
  scope.enqueueNamespace()
  for (const { resource, follows } of syncedKinds) {
    if (follows !== 'namespace') continue
    for (const { metadata } of scope.allUpstream(resource)) scope.enqueue(resource, metadata.name)
  }
  for (const { metadata } of scope.allUpstream('endpointslices')) {
    if (metadata.annotations?.[memberAnnotation] !== scope.member.name) scope.enqueue('remoteSlice', metadata.name)
  }
}

/**
 * Whether the object has, or should have, a copy in this member: most ConfigMaps and Secrets do not, and cause no
 * reconcile.
 */
export function isRelevant(scope: Scope, resource: ResourceName, name: string): boolean {
  const { view, member } = scope
  const follows = syncedKindOf(resource)?.follows
  if (follows === 'namespace' && (resource === 'services' ? view.servicesWanted : view.present)) return true
  if (follows === 'references' && view.refersTo(`${resource}/${name}`)) return true
  if (resource === 'persistentvolumeclaims') {
    const claim = scope.upstream(resource, name)
    if (claim !== undefined && isClaimIn(claim, member.name)) return true
  }
  return scope.live(resource, name) !== undefined
}
