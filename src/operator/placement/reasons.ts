// What changed, as keys of the workloads that must be decided on again: those of one namespace or one logical cluster where it
// is about no more.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { parseKey, type DeepReadonly } from '../../client/index.ts'
import { placedOnAnnotation, type LogicalCluster, type Placement } from '../../crds/index.ts'
import { spaceOf } from './key-index.ts'
import { matches, type World } from './world.ts'

/** Calls `visit` with each such key, for all there is and from now on. Returns how to end it. */
export function followWorld(world: World, visit: (key: string) => void): () => void {
  const all = (keys: Iterable<string>): void => {
    for (const key of keys) visit(key)
  }
  const ends = [
    world.deployments.onChange(({ key, before, after }) => {
      visit(key)
      // Neighbours may wait for this one before they let go of a member.
      if (before?.metadata.annotations?.[placedOnAnnotation] !== after?.metadata.annotations?.[placedOnAnnotation])
        all(world.workloadKeys(spaceOf(key)))
    }),
    world.services.onChange(({ key }) => all(world.workloadKeys(spaceOf(key)))),
    world.namespaces.onChange(({ key }) => {
      const { cluster = '', name } = parseKey(key)
      all(world.workloadKeys(`${cluster}|${name}`))
    }),
    // What a member is concerns whoever could be there. Its heartbeats are no reason to decide again.
    world.members.onChange(({ before, after }) => {
      if (essence(before) !== essence(after)) all(world.deployments.store.keys())
    }),
    world.tenantPlacements.onChange(({ key }) => all(world.workloadsIn(parseKey(key).cluster ?? ''))),
    world.adminPlacements.onChange(({ before, after }) => {
      for (const cluster of world.clusters.store.list()) {
        if (isAbout(before, cluster) || isAbout(after, cluster)) all(world.workloadsIn(cluster.metadata.name))
      }
    }),
    world.clusters.onChange(({ key, before, after }) => {
      if (JSON.stringify(before?.metadata.labels) !== JSON.stringify(after?.metadata.labels) || before === undefined)
        all(world.workloadsIn(key))
    }),
  ]
  return () => {
    for (const end of ends) end()
  }
}

/** Whether an admin's Placement is for this logical cluster. */
function isAbout(rule: DeepReadonly<Placement> | undefined, cluster: DeepReadonly<LogicalCluster>): boolean {
  return rule !== undefined && matches(rule.spec?.logicalClusterSelector, cluster.metadata.labels)
}

function essence(member: DeepReadonly<KubeObject> | undefined): string {
  const { conditions = [] } = (member?.['status'] ?? {}) as { conditions?: { type: string; status: string }[] }
  return JSON.stringify([
    member?.['spec'],
    member?.metadata.deletionTimestamp,
    conditions.find(({ type }) => type === 'Ready')?.status,
  ])
}
