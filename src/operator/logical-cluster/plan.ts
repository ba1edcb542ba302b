// The next steps for one LogicalCluster. Pure: the same observation gives the same steps.
import { type GroupVersionResource, tryClusterName } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  asleepCondition,
  auditDelivered,
  contentFinalizer,
  fillingOf,
  restoringAnnotation,
  transferOf,
  withinLimits,
  type LogicalCluster,
  type LogicalClusterStatus,
} from '#crds/index.ts'
import type { ClusterUrls } from '#operator/framework/operator-context.ts'
import { claimedSecrets, hasKubeconfigs } from './kubeconfigs/keep-kubeconfigs.ts'
import { kubeconfigsCondition, type KubeconfigsOutcome } from './kubeconfigs/outcome.ts'
import { logicalClusterStatus, type ConditionUpdate, type StatusInput } from './status.ts'

export interface Observed {
  readonly object: DeepReadonly<LogicalCluster>
  readonly urls: ClusterUrls
  /** Whether its API answers; absent: not asked yet. */
  readonly served?: { readonly ok: true } | { readonly ok: false; readonly message: string }
  /** The objects that must be gone before it is purged; absent: not asked yet. */
  readonly content?: ContentLeft
  /** Whether the objects of spec.source were put into it; absent: not tried yet. */
  readonly filled?: { readonly ok: true } | { readonly ok: false; readonly message: string }
  /** State of the Secrets of spec.kubeconfigs; absent: not observed yet. */
  readonly kubeconfigs?: KubeconfigsOutcome
  /** The parents of a logical cluster that names one: their path, or why they are invalid. */
  readonly parents?: { readonly path: string } | { readonly problem: string }
  /** Names of logical clusters that name this one as parent; only for one that is being deleted. */
  readonly children?: readonly string[]
  /** RFC 3339, for conditions. */
  readonly now: string
}

/** A step that writes. */
export type WriteStep =
  | { readonly do: 'addFinalizer' }
  | { readonly do: 'setStatus'; readonly status: LogicalClusterStatus }
  | { readonly do: 'deleteObjects' }
  | { readonly do: 'removeKubeconfigs' }
  /** Drop everything that is stored, then remove the finalizer. */
  | { readonly do: 'purgeAndRelease' }

type Step =
  | WriteStep
  /** Ask whether its API answers, then plan again. */
  | { readonly do: 'probe' }
  /** Put the objects of spec.source into it and note that, then plan again. */
  | { readonly do: 'fill' }
  /** Ask whether all of it has come from another installation; note that, or ask again later. */
  | { readonly do: 'askArrived' }
  /** Find the content that is left, then plan again. */
  | { readonly do: 'inspectContent' }
  /** Write and delete Secrets as spec.kubeconfigs says, then plan again. */
  | { readonly do: 'keepKubeconfigs' }
  /** Ask for another reconcile. */
  | { readonly do: 'waitForContent' }

/** The steps, in order. A step that observes something is the last one: planning continues with its result. */
export function plan(observed: Observed): readonly Step[] {
  return observed.object.metadata.deletionTimestamp === undefined ? planReady(observed) : planDeletion(observed)
}

/**
 * Seconds until the next look while members still hold content. A look lists every resource, and a member that is away
 * may hold hundreds of logical clusters for days: 1 s at first, at most 30 s later.
 */
export function contentRetrySeconds({ metadata }: DeepReadonly<LogicalCluster>, nowMs: number): number {
  const waitedSeconds = (nowMs - Date.parse(metadata.deletionTimestamp ?? '')) / 1000
  return Number.isNaN(waitedSeconds) ? 1 : Math.min(30, Math.max(1, waitedSeconds / 20))
}

function planReady(observed: Observed): Step[] {
  const { object, served } = observed
  const nameError = nameErrorOf(object.metadata.name)
  if (nameError !== undefined)
    return statusStep(observed, [{ type: 'Ready', status: 'False', reason: 'NameNotAllowed', message: nameError }])
  const steps: Step[] = hasFinalizer(object) ? [] : [{ do: 'addFinalizer' }]
  const note = transferOf(object)
  if (note?.role === 'source' && note.moved === true) return [...steps, ...planMoved(observed, note.with)]
  const filling = fillingOf(object)
  if (filling !== undefined) return [...steps, ...planFilling(observed, filling)]
  const ready = object.status?.conditions?.find(({ type }) => type === 'Ready')
  if (served === undefined && ready?.status !== 'True') return [...steps, { do: 'probe' }]
  const condition: ConditionUpdate =
    served?.ok === false
      ? { type: 'Ready', status: 'False', reason: 'NotServed', message: served.message }
      : { type: 'Ready', status: 'True', reason: 'Served', message: 'its API is served' }
  const limits = withinLimits(object.spec?.limits, object.status?.usage)
  const asleep = asleepCondition(object.spec?.sleep, object.status?.sleep)
  const conditions = [
    condition,
    ...parentCondition(observed),
    ...(limits === undefined ? [] : [limits]),
    ...(asleep === undefined ? [] : [asleep]),
  ]
  if (condition.status === 'False' || !hasKubeconfigs(object)) return [...steps, ...statusStep(observed, conditions)]
  return [...steps, ...planKubeconfigs(observed, conditions)]
}

/** Its users wait until all objects of its source, or of the snapshot that goes back into it, are there. */
function planFilling(observed: Observed, filling: string): Step[] {
  const { object, filled } = observed
  const { logicalClusterRef, snapshot } = object.spec?.source ?? {}
  const isCopy = (logicalClusterRef ?? snapshot) !== undefined
  const isOurs = isCopy && object.metadata.annotations?.[restoringAnnotation] === undefined
  const message = filled?.ok === false ? `it cannot be filled: ${filled.message}` : filling
  const isArriving = transferOf(object)?.role === 'target'
  const reason = filled?.ok === false ? 'SourceNotCopied' : isArriving ? 'Arriving' : 'Filling'
  const status = statusStep(observed, [
    { type: 'Ready', status: 'False', reason, message },
    ...parentCondition(observed),
  ])
  // What is being copied is told before it begins, if it takes long enough for anybody to see it.
  if (isArriving) return [...status, { do: 'askArrived' }]
  return isOurs && filled === undefined ? [{ do: 'fill' }] : status
}

/** Its users are at another installation; what is here is what it was then. */
function planMoved(observed: Observed, place: string): Step[] {
  const message = `it has moved to ${place}; delete it here when nobody uses its old address any more`
  return statusStep(observed, [
    { type: 'Ready', status: 'False', reason: 'Moved', message },
    ...parentCondition(observed),
  ])
}

/** Condition ParentValid of a logical cluster that names a parent. */
function parentCondition({ parents }: Observed): ConditionUpdate[] {
  if (parents === undefined) return []
  if ('problem' in parents)
    return [
      {
        type: 'ParentValid',
        status: 'False',
        reason: 'ParentsInvalid',
        message: `nothing is inherited, and tenants cannot write: ${parents.problem}`,
      },
    ]
  return [{ type: 'ParentValid', status: 'True', reason: 'Inherits', message: `its path is ${parents.path}` }]
}

/** Conditions about fields that the object does not have. The server writes AuthenticationValid and AuditDelivered. */
function unfounded({ parents, object }: Observed): string[] {
  const { audit, authentication, limits, sleep } = object.spec ?? {}
  return [
    ...(parents === undefined ? ['ParentValid'] : []),
    ...(limits === undefined ? ['WithinLimits'] : []),
    ...(sleep === undefined ? ['Asleep'] : []),
    ...((authentication?.jwt?.length ?? 0) === 0 ? ['AuthenticationValid'] : []),
    ...(audit?.webhook === undefined ? [auditDelivered] : []),
  ]
}

/** Secrets are in the status before they are written: whatever happens in between, they are found and deleted later. */
function planKubeconfigs(observed: Observed, conditions: readonly ConditionUpdate[]): Step[] {
  const { object, kubeconfigs } = observed
  if (kubeconfigs === undefined)
    return [...statusStep(observed, conditions, { kubeconfigs: claimedSecrets(object) }), { do: 'keepKubeconfigs' }]
  const written = kubeconfigsCondition(kubeconfigs)
  return statusStep(observed, written === undefined ? conditions : [...conditions, written], {
    kubeconfigs: kubeconfigs.secrets,
    ...(written === undefined && { dropConditions: ['KubeconfigsWritten'] }),
  })
}

function planDeletion(observed: Observed): Step[] {
  const { object, content, children = [] } = observed
  if (!hasFinalizer(object)) return []
  if (children.length > 0) {
    const named = children.slice(0, maxNamed).join(', ')
    const message = `it has children, which must be deleted or get another parent first: ${named}${children.length > maxNamed ? ' and more' : ''}`
    const held = { type: 'ContentDeleted', status: 'False', reason: 'ChildrenRemain', message } as const
    return [...statusStep(observed, [held]), { do: 'waitForContent' }]
  }
  if (content === undefined) return [{ do: 'inspectContent' }]
  if (content.total === 0)
    return [...(hasKubeconfigs(object) ? [{ do: 'removeKubeconfigs' } as const] : []), { do: 'purgeAndRelease' }]
  const status = statusStep(observed, [
    { type: 'Ready', status: 'False', reason: 'Deleting', message: 'it is being deleted' },
    { type: 'ContentDeleted', status: 'False', reason: 'ContentRemains', message: describeContent(content) },
  ])
  return [{ do: 'deleteObjects' }, ...status, { do: 'waitForContent' }]
}

/** No step if the status is already right: one write per change, none per reconcile. */
function statusStep(
  observed: Observed,
  conditions: readonly ConditionUpdate[],
  { kubeconfigs, dropConditions = [] }: Pick<StatusInput, 'kubeconfigs' | 'dropConditions'> = {},
): Step[] {
  const { object, urls, now } = observed
  const input = { urls, conditions, now, ...(kubeconfigs && { kubeconfigs }) }
  const dropped = [...dropConditions, ...(object.metadata.deletionTimestamp === undefined ? unfounded(observed) : [])]
  const status = logicalClusterStatus(object, { ...input, dropConditions: dropped })
  return status === undefined ? [] : [{ do: 'setStatus', status }]
}

/** Why no logical cluster can have this name; undefined if one can. The CRD's CEL rules check the same on hosts. */
function nameErrorOf(name: string): string | undefined {
  if (name === 'root') return 'the name "root" is reserved; create the LogicalCluster under another name'
  if (tryClusterName(name) === undefined)
    return `the name "${name}" is not an RFC 1123 label; create the LogicalCluster under another name`
  return undefined
}

function hasFinalizer(object: DeepReadonly<LogicalCluster>): boolean {
  return object.metadata.finalizers?.includes(contentFinalizer) ?? false
}

/** An object with the finalizer of a syncer. */
export interface HeldObject {
  readonly gvr: GroupVersionResource
  readonly namespace?: string
  readonly name: string
  readonly uid: string
  readonly deleting: boolean
  /** Finalizers of tenants hold it: only a deletion in the foreground ends its pods while they do. */
  readonly isHeldByOthers: boolean
  /** The finalizers of syncers; each names a member. */
  readonly finalizers: readonly string[]
}

export interface OrphanedObject {
  readonly gvr: GroupVersionResource
  readonly namespace?: string
  readonly name: string
  readonly resourceVersion: string
  /** The finalizers of the object without those of members that do not exist. */
  readonly keptFinalizers: readonly string[]
}

export interface ContentLeft {
  readonly total: number
  /** At most maxHeld objects with finalizers of syncers, without objects whose pods are being deleted. */
  readonly held: readonly HeldObject[]
  /** At most maxHeld objects with a finalizer of a member that does not exist: no syncer will ever remove it. */
  readonly orphaned: readonly OrphanedObject[]
  readonly counts: readonly { readonly resource: string; readonly finalizer: string; readonly count: number }[]
}

/** Objects that one reconcile deletes. The next reconcile deletes more. */
export const maxHeld = 500

const maxLines = 20
const maxNamed = 5

/** One sentence for a condition: what is left, and which finalizers hold it. */
function describeContent({ total, counts }: ContentLeft): string {
  const lines = counts.map(({ resource, finalizer, count }) => `${count} ${resource} held by finalizer "${finalizer}"`)
  const more = lines.length > maxLines ? ` and ${lines.length - maxLines} more kinds` : ''
  return `${total} objects are left: ${lines.slice(0, maxLines).join(', ')}${more}`
}
