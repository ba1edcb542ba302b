// What is left to do for one LogicalCluster. Pure: the same observation gives the same steps.
import { tryClusterName, clusterIdOf, type Condition } from '../../apimachinery/meta/index.ts'
import { contentFinalizer, setCondition, type LogicalCluster, type LogicalClusterStatus } from '../../crds/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import type { ClusterUrls } from '../operator-context.ts'
import { describeContent, type ContentLeft } from './content-left.ts'

export interface Observed {
  readonly object: DeepReadonly<LogicalCluster>
  readonly urls: ClusterUrls
  /** Whether its API answers; absent: nobody has asked. */
  readonly served?: { readonly ok: true } | { readonly ok: false; readonly message: string }
  /** What of its content must be gone before the rest is dropped; absent: nobody has looked. */
  readonly content?: ContentLeft
  /** RFC 3339, for conditions. */
  readonly now: string
}

export type Step =
  | { readonly do: 'takeFinalizer' }
  /** Ask whether its API answers, then plan again. */
  | { readonly do: 'probe' }
  | { readonly do: 'setStatus'; readonly status: LogicalClusterStatus }
  /** Find what is left of its content, then plan again. */
  | { readonly do: 'lookAtContent' }
  | { readonly do: 'deleteObjects' }
  /** Ask for another visit. */
  | { readonly do: 'waitForContent' }
  /** Drop all that is stored, then let the object go. */
  | { readonly do: 'purgeAndRelease' }

/** The steps, in order. A step that finds something out is the last: the next plan goes on from there. */
export function plan(seen: Observed): readonly Step[] {
  return seen.object.metadata.deletionTimestamp === undefined ? planLife(seen) : planEnd(seen)
}

/**
 * When to look again while members still hold content. A look asks for every resource there is, and a member that is away
 * may hold hundreds of logical clusters for days: soon at first, then ever more rarely.
 */
export function contentSeconds({ metadata }: DeepReadonly<LogicalCluster>, nowMs: number): number {
  const waited = (nowMs - Date.parse(metadata.deletionTimestamp ?? '')) / 1000
  return Number.isNaN(waited) ? 1 : Math.min(30, Math.max(1, waited / 20))
}

function planLife(seen: Observed): Step[] {
  const { object, served } = seen
  const name = object.metadata.name
  const refused = refusedName(name)
  if (refused !== undefined) return statusStep(seen, { status: 'False', reason: 'NameNotAllowed', message: refused })
  const steps: Step[] = hasFinalizer(object) ? [] : [{ do: 'takeFinalizer' }]
  const ready = object.status?.conditions?.find(({ type }) => type === 'Ready')
  if (served === undefined && ready?.status !== 'True') return [...steps, { do: 'probe' }]
  if (served?.ok === false) {
    return [...steps, ...statusStep(seen, { status: 'False', reason: 'NotServed', message: served.message })]
  }
  return [...steps, ...statusStep(seen, { status: 'True', reason: 'Served', message: 'its API is served' })]
}

function planEnd(seen: Observed): Step[] {
  const { object, content } = seen
  if (!hasFinalizer(object)) return []
  if (content === undefined) return [{ do: 'lookAtContent' }]
  if (content.total === 0) return [{ do: 'purgeAndRelease' }]
  const message = describeContent(content)
  const deleting = { status: 'False', reason: 'Deleting', message: 'it is being deleted' } as const
  const left = { type: 'ContentDeleted', status: 'False', reason: 'ContentRemains', message } as const
  return [{ do: 'deleteObjects' }, ...statusStep(seen, deleting, [left]), { do: 'waitForContent' }]
}

type Word = Pick<Condition, 'status' | 'reason' | 'message'>

/** No step where the object says all of it already: one write per change, none per visit. */
function statusStep(seen: Observed, ready: Word, more: readonly (Word & { type: string })[] = []): Step[] {
  const { object, urls, now } = seen
  const observedGeneration = object.metadata.generation ?? 0
  let conditions: readonly DeepReadonly<Condition>[] = object.status?.conditions ?? []
  for (const word of [{ type: 'Ready', ...ready }, ...more]) {
    conditions = setCondition(conditions, { ...word, observedGeneration }, now)
  }
  const status: LogicalClusterStatus = {
    ...(object.status as LogicalClusterStatus | undefined),
    id: clusterIdOf(object.metadata.uid ?? ''),
    url: urls.url,
    observedGeneration,
    conditions: [...conditions],
  }
  delete status.directURL
  if (urls.directURL !== undefined) status.directURL = urls.directURL
  const before = object.status
  const same =
    before !== undefined &&
    before.id === status.id &&
    before.url === status.url &&
    before.directURL === status.directURL &&
    before.observedGeneration === observedGeneration &&
    conditions === before.conditions
  return same ? [] : [{ do: 'setStatus', status }]
}

/** Why there can be no logical cluster of this name. A host's CEL rules say the same when they are there. */
function refusedName(name: string): string | undefined {
  if (name === 'root') return 'the name "root" is reserved; create the LogicalCluster under another name'
  if (tryClusterName(name) === undefined) {
    return `the name "${name}" is not an RFC 1123 label; create the LogicalCluster under another name`
  }
  return undefined
}

function hasFinalizer(object: DeepReadonly<LogicalCluster>): boolean {
  return object.metadata.finalizers?.includes(contentFinalizer) ?? false
}
