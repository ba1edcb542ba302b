// Changes of Services, EndpointSlices and pods in logical clusters, as reconciles of slices.
import { exportedNameOf, memberAnnotation, memberUidAnnotation } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { isLost, isRemote } from '#syncer/rules/slices.ts'
import { serviceNameLabel } from '#syncer/transform/slice-labels.ts'
import { objectOf, type ObjectChange } from './change.ts'
import { podOnNodeChanged } from './nodes.ts'

/** Reconciles a slice of this member, or of another one. */
export function sliceChanged(scope: Scope, change: ObjectChange, name: string): void {
  const { member } = scope
  const slice = objectOf(change)
  const from = slice?.metadata.annotations?.[memberAnnotation]
  if (slice === undefined || from === undefined) return
  scope.enqueue(from === member.name ? 'slice' : 'remoteSlice', name)
  // The slices of a lost member may have waited for this slice.
  if (member.serviceNetwork !== 'None')
    for (const { metadata } of lostSlicesOf(scope, slice)) scope.enqueue('remoteSlice', metadata.name)
}

function lostSlicesOf(scope: Scope, { metadata }: CachedObject): CachedObject[] {
  const service = metadata.labels?.[serviceNameLabel]
  return [...scope.allUpstream('endpointslices')].filter(
    (slice) => isLost(slice) && slice.metadata.labels?.[serviceNameLabel] === service,
  )
}

/** Reconciles the slices of the Service on both sides. */
export function serviceChanged(scope: Scope, change: ObjectChange, name: string): void {
  const service = objectOf(change)
  if (change.after === undefined) scope.enqueueNamespace()
  for (const slice of scope.allUpstream('endpointslices')) {
    const of = slice.metadata.labels?.[serviceNameLabel]
    // The second Service of an exported one decides which hostnames the slices of the exported one have.
    if (of === name || (of !== undefined && service !== undefined && of === exportedNameOf(service))) {
      const from = slice.metadata.annotations?.[memberAnnotation]
      scope.enqueue(from === scope.member.name ? 'slice' : 'remoteSlice', slice.metadata.name)
    }
  }
  // Slices of the member have no copy yet if they were seen before their Service or while a list lacked it, or if the
  // Service did not select their pods.
  if (selectorOf(change.before) !== selectorOf(change.after))
    for (const { metadata } of slicesInMember(scope, name)) scope.enqueue('slice', metadata.name)
}

function selectorOf(service: ObjectChange['after']): string | undefined {
  return service && JSON.stringify((service['spec'] as { selector?: object } | undefined)?.selector ?? {})
}

/** The slices that the member made for a Service. */
function slicesInMember(scope: Scope, service: string): CachedObject[] {
  return [...scope.allLive('endpointslices')].filter(
    (slice) => slice.metadata.labels?.[serviceNameLabel] === service && !isRemote(slice),
  )
}

/** The upstream copy of a pod of this member has come, changed or gone: reconciles its node, slices and Services. */
export function shownPodChanged(scope: Scope, change: ObjectChange): void {
  const { context, memberNamespace } = scope
  const facts = (pod: ObjectChange['after']): string => {
    const { uid, labels, annotations = {} } = pod?.metadata ?? {}
    const { hostname } = (pod?.['spec'] ?? {}) as { hostname?: string }
    return annotations[memberAnnotation] === scope.member.name
      ? JSON.stringify([annotations[memberUidAnnotation] ?? uid, labels, hostname])
      : ''
  }
  podOnNodeChanged(scope, change)
  const { before, after } = change
  if (facts(before) === facts(after)) return
  if (memberNamespace === undefined) return
  for (const { metadata } of context.slicesWith(memberNamespace, (after ?? before)?.metadata.name ?? '')) {
    scope.enqueue('slice', metadata.name)
    scope.enqueue('services', metadata.labels?.[serviceNameLabel])
  }
}
