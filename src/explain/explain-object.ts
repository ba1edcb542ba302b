// "Why is nothing happening?" for one object: all that keeps it from being as it should be, with the age of each wait,
// what it waits for and what to do. Pure: the caller reads the objects.
import { copiesOf, copyFindings, heldAnnotation, moveNote, refusalFindings } from './copies.ts'
import { conditionFindings } from './conditions.ts'
import { isAbout, warningNotes } from './events.ts'
import {
  byUrgency,
  conditionOf,
  subjectOf,
  todoIf,
  withoutRepeats,
  type Finding,
  type SeenObject,
  type Subject,
} from './finding.ts'
import { kindFindings } from './kinds.ts'
import { isReadyMember, memberFindings } from './members.ts'
import { podFindings } from './pods.ts'
import { remedyOf } from './remedies.ts'
import type { Surroundings } from './surroundings.ts'

/** Reasons of conditions AuthenticationValid and AuditDelivered. */
const foreignReasons: readonly string[] = ['IssuersInvalid', 'KeysUnreadable', 'WebhookFailing']

/** More findings about its pods are counted. */
const maxFindings = 10

/** The findings about an object, the urgent ones first; one finding `well` if there is nothing to say. */
export function explainObject(object: SeenObject, around: Surroundings): Finding[] {
  const subject = subjectOf(object, around.cluster)
  const { isAsleep = isClusterAsleep(around.logicalCluster) } = around
  const found = [
    // Neither sign-in nor the audit log keeps an object from its purpose.
    ...clusterFindings(around).filter(({ reason = '' }) => !foreignReasons.includes(reason)),
    ...deletionFindings(around.namespace, around.cluster),
    ...deletionFindings(object, around.cluster),
    ...placementFindings(object, subject, around),
    ...refusalFindings(object, subject),
    ...copyFindings(object, subject, around.nowMs),
    ...ownConditions(object, subject).filter(({ reason }) => !isAsleep || reason !== 'ScalingDisabled'),
    ...(isAsleep ? [] : kindFindings(object, subject, around)),
    ...membersOf(object, around.members ?? []).flatMap(memberFindings),
    ...podsFindings(around.pods ?? [], around.cluster),
    ...warningNotes(eventsOf(object, around), subject, around.nowMs),
    ...moveNote(object, subject),
  ]
  const isQuiet = found.every(({ state }) => state === 'note' || state === 'well')
  return byUrgency(
    isQuiet ? [{ subject, state: 'well', what: 'nothing is wrong, and nothing waits' }, ...found] : found,
  )
}

/** What keeps a whole logical cluster from working. */
export function clusterFindings({
  logicalCluster,
  cluster,
}: Pick<Surroundings, 'logicalCluster' | 'cluster'>): Finding[] {
  if (logicalCluster === undefined) return []
  const subject = subjectOf(logicalCluster)
  if (logicalCluster.metadata.deletionTimestamp !== undefined) return deletionFindings(logicalCluster)
  if (conditionOf(logicalCluster, 'Ready') !== undefined)
    return [...conditionFindings(logicalCluster, subject), ...sleepNote(logicalCluster, subject)]
  return [
    {
      subject,
      state: 'waits',
      what: `logical cluster ${cluster} has no condition Ready`,
      waitsFor: 'an operator to handle it',
      todo: 'check that kcp operator runs: kcp diagnose',
    },
  ]
}

/** Whether its workloads have no pods because it is asleep. */
export function isClusterAsleep(logicalCluster: SeenObject | undefined): boolean {
  return logicalCluster !== undefined && conditionOf(logicalCluster, 'Asleep')?.status === 'True'
}

function sleepNote(logicalCluster: SeenObject, subject: Subject): Finding[] {
  const condition = conditionOf(logicalCluster, 'Asleep')
  if (condition?.status !== 'True') return []
  const { message, reason, lastTransitionTime: since } = condition
  return [{ subject, state: 'note', what: `it is asleep, so its workloads have no pods: ${message}`, reason, since }]
}

/** Why an object that is being deleted is still there. */
export function deletionFindings(object: SeenObject | undefined, cluster?: string): Finding[] {
  const { deletionTimestamp: since, finalizers = [] } = object?.metadata ?? {}
  if (object === undefined || since === undefined) return []
  const subject = subjectOf(object, cluster)
  const members = finalizers
    .filter((name) => name.startsWith(syncerPrefix))
    .map((name) => name.slice(syncerPrefix.length))
  const others = finalizers.filter((name) => !name.startsWith(syncerPrefix))
  const waits = [
    ...members.map((member) => `member ${member} to have nothing of it any more`),
    ...(others.length === 0 ? [] : [`the controllers of its finalizers: ${others.join(', ')}`]),
  ]
  const content = conditionOf(object, 'ContentDeleted') ?? conditionOf(object, 'NamespaceContentRemaining')
  const what = content === undefined ? 'it is being deleted' : `it is being deleted: ${content.message}`
  const waitsFor = waits.length === 0 ? 'its content to be deleted' : waits.join(', and ')
  const todo = members.length > 0 ? `see whether the member answers: kcp explain member/${members[0] ?? ''}` : undefined
  return [{ subject, state: 'waits', what, since, waitsFor, ...todoIf(todo) }]
}

const syncerPrefix = 'syncer.kcp.dev/'

/** Why a workload has no copy at all. Condition Placed, where there is one, says it among the other conditions. */
function placementFindings(object: SeenObject, subject: Subject, { members, nowMs }: Surroundings): Finding[] {
  if (object.metadata.deletionTimestamp !== undefined) return []
  const held = object.metadata.annotations?.[heldAnnotation]
  // Kinds that members export are placed, too.
  if (!isPlacedKind(object) && held === undefined) return definitionFindings(object, subject)
  const hasCondition = conditionOf(object, 'Placed')?.status === 'False'
  if (held !== undefined && !hasCondition) return [{ subject, state: 'wrong', what: `it is held: ${held}` }]
  if (copiesOf(object).length > 0 || held !== undefined || hasCondition) return []
  if (members?.length === 0)
    return [
      {
        subject,
        state: 'wrong',
        what: 'it is stored and does not run: no member is registered, or none may be used by this logical cluster',
        todo: 'admin: kcp member join NAME --kubeconfig FILE',
      },
    ]
  const { creationTimestamp = '' } = object.metadata
  const isNew = nowMs - Date.parse(creationTimestamp) < newMs
  return [
    {
      subject,
      state: isNew ? 'waits' : 'wrong',
      what: 'no member has been chosen yet',
      since: creationTimestamp,
      waitsFor: 'the operator to place it',
      ...(!isNew && { todo: 'check that kcp operator runs and is the leader: kcp diagnose' }),
    },
  ]
}

/** After this time, the operator has placed a new workload. */
const newMs = 30_000

/** Kinds that are placed. Pods that a member made have no record of their own. */
/** What members keep from a logical cluster of an API that they export. */
function definitionFindings({ metadata: { annotations = {} } }: SeenObject, subject: Subject): Finding[] {
  const held = annotations['kcp.dev/held-change']
  const dropped = annotations['kcp.dev/dropped-fields']
  return [
    ...(held === undefined
      ? []
      : [{ subject, state: 'wrong' as const, what: held, reason: 'ChangeHeld', ...todoIf(remedyOf('ChangeHeld')) }]),
    ...(dropped === undefined
      ? []
      : [
          {
            subject,
            state: 'note' as const,
            what: `members lack fields, so the logical cluster does not have them: ${dropped}`,
          },
        ]),
  ]
}

function isPlacedKind({ kind, metadata }: SeenObject): boolean {
  if (!placedKinds.has(kind)) return false
  const isMade =
    metadata.annotations?.['kcp.dev/member'] !== undefined || metadata.annotations?.['kcp.dev/template'] !== undefined
  return !isMade && !(metadata.ownerReferences ?? []).some(({ controller }) => controller === true)
}

const placedKinds: ReadonlySet<string> = new Set([
  ...['Deployment', 'StatefulSet', 'DaemonSet', 'ReplicaSet', 'ReplicationController', 'Job', 'CronJob', 'Pod'],
])

/** Its conditions; of a pod the part about pods has them. */
function ownConditions(object: SeenObject, subject: Subject): Finding[] {
  if (object.kind === 'Pod') return podFindings(object, subject.cluster ?? '')
  const findings = conditionFindings(object, subject)
  return findings.map((finding) =>
    finding.reason !== undefined && finding.todo === undefined
      ? { ...finding, ...todoIf(remedyOf(finding.reason)) }
      : finding,
  )
}

function membersOf(object: SeenObject, members: readonly SeenObject[]): SeenObject[] {
  const names = new Set(copiesOf(object).map(({ member }) => member))
  const own = object.metadata.annotations?.['kcp.dev/member']
  if (own !== undefined) names.add(own)
  return members.filter((member) => names.has(member.metadata.name ?? '') && !isQuietMember(member))
}

function isQuietMember(member: SeenObject): boolean {
  return isReadyMember(member) && memberFindings(member).length === 0
}

function podsFindings(pods: readonly SeenObject[], cluster: string): Finding[] {
  const all = withoutRepeats(pods.flatMap((pod) => podFindings(pod, cluster)))
  const shown = all.slice(0, maxFindings)
  const rest = all.length - maxFindings
  const [last] = shown
  if (rest <= 0 || last === undefined) return shown
  return [...shown, { subject: last.subject, state: 'note', what: `${rest} more findings about pods` }]
}

function eventsOf(object: SeenObject, { events = [], pods = [] }: Surroundings): SeenObject[] {
  const uids = new Set([object, ...pods].flatMap(({ metadata }) => metadata.uid ?? []))
  return events.filter((event) => isAbout(event, uids))
}
