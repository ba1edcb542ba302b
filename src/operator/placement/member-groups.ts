// Which workloads a change of a member concerns: those with something there, and those that may still go there.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { arrivingStates, hasEnded, heldAnnotation, isPlaceable, placedOn } from '#crds/index.ts'
import type { Gate } from '#placement/index.ts'

/** The group of workloads that move, are held, divided or nowhere: any member may take them. */
export const unsettledGroup = 'unsettled'

/** The group of workloads with a decision about this member. */
export function memberGroup(member: string): string {
  return `member ${member}`
}

/**
 * The groups of a workload. It is settled if each copy that it should have serves, or its only one is on the way to serve: that
 * copy stays in its member; and nothing is held. What has ended, and what is placed by nobody, has nothing to wait for.
 */
export function memberGroupsOf(workload: DeepReadonly<KubeObject>): string[] {
  const copies = Object.entries(placedOn(workload as KubeObject))
  const isSettled =
    copies.length > 0 &&
    // A divided workload may have a part on any member.
    copies.every(([, { replicas }]) => replicas === undefined) &&
    copies.every(([, { state }]) => state === 'Serving' || (copies.length === 1 && arrivingStates.includes(state))) &&
    workload.metadata.annotations?.[heldAnnotation] === undefined
  const members = copies.map(([member]) => memberGroup(member))
  return isSettled || hasEnded(workload) || !isPlaceable(workload) ? members : [...members, unsettledGroup]
}

/** Whether it stays in a member until other workloads of its namespace serve elsewhere. */
export function waitsForSiblings(workload: DeepReadonly<KubeObject>): boolean {
  return Object.values(placedOn(workload as KubeObject)).some(({ wait }) => wait?.gate === siblingsGate)
}

const siblingsGate: Gate = 'NamespaceMayLeave'
