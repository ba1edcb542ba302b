// Brings the aggregated ClusterRoles of one logical cluster up to date. Remembers what it has decoded, and of which
// ClusterRoles nothing is left to do, so that a repeated visit costs little.
import { createHash } from 'node:crypto'
import { yieldEvery } from '#async/index.ts'
import { groupResourceText } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { ObjectGraph, SelectedObject } from '#reconcile/object-graph/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { clusterRoles } from './resources.ts'
import { aggregatedRules, aggregatesFrom, sameRules, type SourceRole } from './aggregate-rules.ts'
import { DecodedRoles, type DecodedRole, type KeyedRule } from './decoded-roles.ts'

/** How long a visit holds up others. */
const sliceMs = 5
/** Three rounds are enough for the default chain view, edit, admin. The bound ends roles that aggregate each other. */
const maxRounds = 10
/** JSON of the roles that are aggregated in one round: seconds of work. */
const maxRoundBytes = 256 * 1024 * 1024
/** Logical clusters that are remembered as up to date. */
const maxSettled = 10_000

/** Upstream's name: clients see who filled in the rules. */
const fieldManager = 'clusterrole-aggregation-controller'

const resource = groupResourceText(clusterRoles)

type Outcome = 'same' | 'written' | 'refused'

/** The ClusterRoles of one round: those that are aggregated, and those that they may aggregate, by name. */
interface Roles {
  readonly aggregated: readonly SelectedObject[]
  readonly sources: readonly SelectedObject[]
}

export class AggregationVisits {
  readonly decoded = new DecodedRoles()
  readonly #graph: Pick<ObjectGraph, 'select'>
  readonly #log: Logger
  /** By logical cluster: the ClusterRoles, as a hash of their names and revisions, for which nothing is left to do. */
  readonly #settled = new Map<string, string>()

  constructor({ graph, log }: { readonly graph: Pick<ObjectGraph, 'select'>; readonly log: Logger }) {
    this.#graph = graph
    this.#log = log
  }

  /** Updates every aggregated ClusterRole of a logical cluster. A role that aggregates another one follows a round later. */
  async visit(id: string, client: Pick<KubeClient, 'patch'>, signal: AbortSignal): Promise<void> {
    for (let round = 0; round < maxRounds; round++) {
      const roles = await this.#rolesOf(id, signal)
      if (roles === undefined) return
      const hash = hashOf(roles)
      if (this.#settled.get(id) === hash) return
      const outcomes = await this.#update(roles, client, signal)
      if (outcomes.has('written')) continue
      // Refused updates are not repeated before a ClusterRole changes.
      this.#settle(id, hash)
      return
    }
  }

  async #rolesOf(id: string, signal: AbortSignal): Promise<Roles | undefined> {
    const marked = await this.#graph.select(id, resource, ({ contains }) => contains('"aggregationRule"'), signal)
    const pause = yieldEvery(sliceMs, signal)
    const aggregated: SelectedObject[] = []
    const decoded: Pick<DecodedRole, 'selectors'>[] = []
    for (const object of marked) {
      const due = pause()
      if (due !== undefined) await due
      const role = this.decoded.of(object)
      if (role.selectors.length === 0) continue
      aggregated.push(object)
      decoded.push({ selectors: role.selectors })
    }
    const isSource = aggregatesFrom(decoded)
    if (isSource !== undefined)
      return { aggregated, sources: await this.#graph.select(id, resource, ({ labels }) => isSource(labels), signal) }
    this.#log.warn('ClusterRoles are not aggregated: they have too many selectors', { cluster: id })
    return undefined
  }

  async #update(
    { aggregated, sources }: Roles,
    client: Pick<KubeClient, 'patch'>,
    signal: AbortSignal,
  ): Promise<ReadonlySet<Outcome>> {
    const outcomes = new Set<Outcome>()
    const work = new WorkBudget({ bytes: maxRoundBytes })
    const pause = yieldEvery(sliceMs, signal)
    const given = sources.map((source) => this.#sourceOf(source))
    for (const object of aggregated) {
      const role = this.decoded.of(object)
      const rules = await aggregatedRules(role, given, { work, pause })
      if (rules !== undefined && sameRules(role.rules, rules)) outcomes.add('same')
      else outcomes.add(await this.#write(object, rules, client, signal))
    }
    return outcomes
  }

  #sourceOf(source: SelectedObject): SourceRole {
    const { key, labels, bytes } = source
    return { name: key.name, labels, bytes, rules: () => this.decoded.of(source).rules }
  }

  /** `rules` undefined: they are too many. */
  async #write(
    { key, object }: SelectedObject,
    rules: readonly KeyedRule[] | undefined,
    client: Pick<KubeClient, 'patch'>,
    signal: AbortSignal,
  ): Promise<Outcome> {
    const keys = { cluster: key.cluster, name: key.name }
    if (rules === undefined) {
      this.#log.warn('a ClusterRole keeps its rules: those to aggregate are too many', keys)
      return 'refused'
    }
    try {
      const { apiVersion, kind, metadata } = object()
      const { name = '', uid } = metadata
      const config = {
        apiVersion,
        kind,
        // With its uid: a role that is deleted meanwhile would otherwise be created again.
        metadata: { name, ...(uid !== undefined && { uid }) },
        ...(rules.length > 0 && { rules: rules.map(({ rule }) => rule) }),
      }
      await client.patch(clusterRoles, { name }, 'apply', config, { signal, force: true, fieldManager })
      return 'written'
    } catch (error) {
      // Deleted, or created anew: the next round sees it.
      if (isStatusError(error, 'Conflict')) return 'written'
      if (!isStatusError(error, 'Invalid') && !isStatusError(error, 'RequestEntityTooLarge')) throw error
      this.#log.warn('a ClusterRole keeps its rules: the aggregated ones were refused', { ...keys, error })
      return 'refused'
    }
  }

  #settle(id: string, hash: string): void {
    this.#settled.delete(id)
    this.#settled.set(id, hash)
    for (const oldest of this.#settled.keys()) {
      if (this.#settled.size <= maxSettled) return
      this.#settled.delete(oldest)
    }
  }
}

function hashOf({ aggregated, sources }: Roles): string {
  const hash = createHash('sha256')
  for (const objects of [aggregated, sources])
    for (const { key, revision } of objects) hash.update(`${key.name}@${String(revision)}\n`)
  return hash.digest('base64')
}
