// The reconciles of everything in one namespace of a logical cluster: its member namespace is known from now on, or it
// has got another name.
import { isPlaceable, workloadKinds } from '#crds/index.ts'
import type { Scope } from '#syncer/context/scope.ts'
import { syncedKinds } from '#syncer/rules/synced-kinds.ts'
import { isRelevant } from './content.ts'
import { reconcileAllIn } from './downstream.ts'

/** Asks for the reconciles of all objects of the namespace, on both sides. */
export function reconcileWhole(scope: Scope): void {
  for (const { resource, follows } of syncedKinds)
    for (const object of scope.allUpstream(resource)) {
      const { name = '' } = object.metadata
      if (follows === 'decision' ? isPlaceable(object) : isRelevant(scope, resource, name))
        scope.enqueueCopy(resource, name)
    }
  if (scope.memberNamespace !== undefined) reconcileAllIn(scope)
  for (const { gvr, history } of workloadKinds)
    if (history !== undefined)
      for (const { metadata } of scope.allUpstream(gvr.resource)) scope.enqueue('history', metadata.name)
}
