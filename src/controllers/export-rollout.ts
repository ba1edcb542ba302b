// How far the newest revision of an export is released: first to the groups of consumers that the export names, one
// after the other, then to the others in steps.
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { matches, type APIExport, type RolloutGroup } from '#crds/index.ts'
import type { BindingFacts, ExportFacts, SharedApis } from '#reconcile/object-graph/index.ts'

/** The steps, in percent of the consumers that no group has, in which a revision is released. */
const steps = [5, 25, 100]

export interface Release {
  readonly order: readonly RolloutGroup[]
  /** The number of groups that may have the revision, from the first. */
  readonly groups: number
  /** The share of all other consumers, in percent, that may have it. */
  readonly percent: number
}

const orders = new LRUCache<string, readonly RolloutGroup[]>({ max: 1000 })

/** The release of the newest revision. */
export function releaseOf({ order: text, releasedGroups, released }: ExportFacts): Release {
  let order = orders.get(text)
  if (order === undefined) {
    order = text === '' ? [] : (parseJsonText(text) as unknown as RolloutGroup[])
    orders.set(text, order)
  }
  return { order, groups: releasedGroups ?? order.length, percent: released }
}

type Consumer = Pick<BindingFacts, 'cluster' | 'exportUid' | 'labels'>
type Names = Pick<SharedApis, 'nameOf'>

/** True if the consumer may have the revision. The order of consumers in no group is fixed: their ids decide. */
export function isReleased(consumer: Consumer, { order, groups, percent }: Release, names: Names): boolean {
  const isPastGroups = groups >= order.length
  if (isPastGroups && percent >= 100) return true
  const group = order.findIndex((one) => isIn(one, consumer, names))
  if (group >= 0) return group < groups
  if (!isPastGroups) return false
  const { exportUid = '', cluster } = consumer
  const place = createHash('sha256').update(`${exportUid}/${cluster}`).digest().readUInt32BE() / 2 ** 32
  return place * 100 < percent
}

function isIn({ consumers, selector }: RolloutGroup, { cluster, labels }: Consumer, names: Names): boolean {
  if (consumers?.includes(names.nameOf(cluster) ?? '') === true) return true
  return selector !== undefined && matches(selector, labels ?? {})
}

export interface RolloutState {
  /** The revision was just made. */
  readonly isNew: boolean
  readonly revision: number
  readonly bindings: readonly BindingFacts[]
  readonly held: readonly BindingFacts[]
}

/** The next release: one step further once all consumers of this one have the revision, within what the export says. */
export function nextRelease({ spec, status }: APIExport, state: RolloutState, names: Names): Release {
  const { percent: most = 100, pause = false, holdOnError = true, order = [] } = spec?.rollout ?? {}
  const { released = 0, groups = order.length } = status?.rollout ?? {}
  const before: Release = state.isNew
    ? { order, groups: 0, percent: 0 }
    : { order, groups: Math.min(groups, order.length), percent: Math.min(released, most) }
  if (pause || (holdOnError && state.held.length > 0)) return before
  const isDone = state.bindings.every(
    (binding) =>
      binding.revision === state.revision || binding.held !== undefined || !isReleased(binding, before, names),
  )
  if (!isDone) return before
  if (before.groups < order.length) return { ...before, groups: before.groups + 1 }
  return { ...before, percent: Math.min(most, steps.find((step) => step > before.percent) ?? 100) }
}
