// "Why is nothing happening?" for a whole logical cluster, and for a member. Pure.
import { warningNotes } from './events.ts'
import { clusterFindings, explainObject, isClusterAsleep } from './explain-object.ts'
import { byUrgency, subjectOf, withoutRepeats, type Finding, type SeenObject } from './finding.ts'
import { memberFindings } from './members.ts'
import { podFindings } from './pods.ts'
import type { Surroundings } from './surroundings.ts'

export interface ClusterContent extends Omit<Surroundings, 'namespace'> {
  readonly namespaces: readonly SeenObject[]
  /** Workloads, Services, claims: all that `explainObject` should look at. */
  readonly objects: readonly SeenObject[]
}

/** Maximum number of findings that are shown; of the others, only the number is shown. */
const maxFindings = 50

/** All that waits or is wrong in a logical cluster, the urgent findings first. */
export function explainCluster(content: ClusterContent): Finding[] {
  const { cluster, namespaces, objects, pods = [], members = [], events = [], nowMs } = content
  const subject = { kind: 'LogicalCluster', name: cluster }
  const { events: _events, pods: _pods, members: _members, logicalCluster: _cluster, ...rest } = content
  const around = {
    ...rest,
    isAsleep: isClusterAsleep(content.logicalCluster),
    ...(members.length === 0 && { members }),
  }
  const found = [
    ...clusterFindings(content),
    ...namespaces
      .filter(({ metadata }) => metadata.deletionTimestamp !== undefined)
      .flatMap((one) => explainObject(one, rest)),
    ...objects.flatMap((object) => explainObject(object, around)),
    ...pods.flatMap((pod) => podFindings(pod, cluster)),
    ...members.flatMap(memberFindings),
  ].filter(({ state }) => state === 'wrong' || state === 'waits')
  const urgent = byUrgency(withoutRepeats(found))
  const more = urgent.length - maxFindings
  const shown = urgent.slice(0, maxFindings)
  if (more > 0) shown.push({ subject, state: 'note', what: `${more} more objects wait or are wrong` })
  const counted = `${objects.length} objects and ${pods.length} pods: nothing is wrong, and nothing waits`
  if (urgent.length === 0) shown.push({ subject, state: 'well', what: counted })
  const asleep = clusterFindings(content).filter(({ state }) => state === 'note')
  return [...shown, ...asleep, ...warningNotes(events, subject, nowMs)]
}

/** All that is wrong with a member, what runs there, and what holds its drain up. */
export function explainMember(member: SeenObject): Finding[] {
  const found = byUrgency(memberFindings(member))
  if (found.some(({ state }) => state !== 'note')) return found
  return [{ subject: subjectOf(member), state: 'well', what: 'it answers, and nothing waits for it' }, ...found]
}
