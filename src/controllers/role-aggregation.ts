// Keeps the rules of aggregated ClusterRoles (admin, edit, view and tenants' own) current. The ClusterRoles that every
// logical cluster is created with are aggregated already, so only ClusterRoles of tenants cause work.
import { createHash } from 'node:crypto'
import { LRUCache } from 'lru-cache'
import { groupResourceText, isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { type LabelSelector, type LabelSelectorSource, selectorFromObject } from '#apimachinery/selector/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { yieldEvery } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import { createKeyQueue, runController } from '#reconcile/index.ts'
import type { ObjectGraph, SelectedObject } from '#reconcile/object-graph/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { ControllerContext } from './framework.ts'
import { clusterRoles } from './resources.ts'

const bootstrapping = 'kubernetes.io/bootstrapping'

/** Watches the ClusterRoles of all logical clusters. A key of the queue is the id of a logical cluster. */
export async function startRoleAggregation({ graph, clientOf, log, signal }: ControllerContext): Promise<void> {
  using queue = createKeyQueue()
  const stop = graph.follow(groupResourceText(clusterRoles), ({ key, labels }) => {
    if (labels?.[bootstrapping] !== 'rbac-defaults') queue.add(key.cluster)
  })
  const aggregator = new RoleAggregator({ graph, log })
  await runController({
    name: 'role-aggregation',
    queue,
    log,
    signal,
    workers: 1,
    reconcile: async (id, signal) => {
      const client = clientOf(id)
      if (client !== undefined) await aggregator.reconcile(id, client, signal)
    },
  })
  stop()
}

/** Milliseconds of work after which a reconcile lets other work run. */
const sliceMs = 5
/**
 * Maximum number of rounds of one reconcile. Three are enough for the default chain view, edit, admin; the limit ends
 * the updates of roles that aggregate each other.
 */
const maxRounds = 10
/** Maximum bytes of JSON of the roles that are aggregated in one round: seconds of work. */
const maxRoundBytes = 256 * 1024 * 1024
/** Number of logical clusters that are remembered as up to date. */
const maxSettled = 10_000

/** Upstream's field manager, which shows clients the writer of the rules. */
const fieldManager = 'clusterrole-aggregation-controller'

const resource = groupResourceText(clusterRoles)

type Outcome = 'same' | 'written' | 'refused'

/** The ClusterRoles of one round: the aggregated roles, and the roles that they may aggregate, sorted by name. */
interface Roles {
  readonly aggregated: readonly SelectedObject[]
  readonly sources: readonly SelectedObject[]
}

/**
 * Brings the aggregated ClusterRoles of one logical cluster up to date. Remembers decoded roles, and the state of
 * logical clusters in which nothing is left to do, so that a repeated reconcile costs little.
 */
export class RoleAggregator {
  readonly decoded = new DecodedRoles()
  readonly #graph: Pick<ObjectGraph, 'select'>
  readonly #log: Logger
  /** For each logical cluster in which nothing is left to do, a hash of the names and revisions of its ClusterRoles. */
  readonly #settled = new LRUCache<string, string>({ max: maxSettled })

  constructor({ graph, log }: { readonly graph: Pick<ObjectGraph, 'select'>; readonly log: Logger }) {
    this.#graph = graph
    this.#log = log
  }

  /**
   * Updates every aggregated ClusterRole of a logical cluster. A role that aggregates another aggregated role is
   * updated a round later.
   */
  async reconcile(id: string, client: Pick<KubeClient, 'patch'>, signal: AbortSignal): Promise<void> {
    for (let round = 0; round < maxRounds; round++) {
      const roles = await this.#rolesOf(id, signal)
      if (roles === undefined) return
      const hash = hashOf(roles)
      if (this.#settled.get(id) === hash) return
      const outcomes = await this.#update(roles, client, signal)
      if (outcomes.has('written')) continue
      // Refused updates are not repeated before a ClusterRole changes.
      this.#settled.set(id, hash)
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

  /** `rules` is undefined if there are too many. */
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
        // Without the uid, a role that is deleted meanwhile would be created again.
        metadata: { name, ...(uid !== undefined && { uid }) },
        ...(rules.length > 0 && { rules: rules.map(({ rule }) => rule) }),
      }
      await client.patch(clusterRoles, { name }, 'apply', config, { signal, force: true, fieldManager })
      return 'written'
    } catch (error) {
      // The role was deleted, or created again: the next round sees it.
      if (isStatusError(error, 'Conflict')) return 'written'
      if (!isStatusError(error, 'Invalid') && !isStatusError(error, 'RequestEntityTooLarge')) throw error
      this.#log.warn('a ClusterRole keeps its rules: the aggregated ones were refused', { ...keys, error })
      return 'refused'
    }
  }
}

function hashOf({ aggregated, sources }: Roles): string {
  const hash = createHash('sha256')
  for (const objects of [aggregated, sources])
    for (const { key, revision } of objects) hash.update(`${key.name}@${String(revision)}\n`)
  return hash.digest('base64')
}

/** Limits of the aggregated rules of one role: their number, and the length of their JSON. */
const maxRules = 10_000
const maxLength = 1024 * 1024
/** Maximum number of selectors of one logical cluster; each is matched with each of its ClusterRoles. */
const maxSelectors = 1000

/** Called once for each role that is examined; awaited if it returns a promise. */
type Pause = () => Promise<void> | undefined

/** A ClusterRole that others may aggregate. */
interface SourceRole {
  readonly name: string
  readonly labels: Readonly<Record<string, string>>
  /** Size of the role's JSON, in bytes. */
  readonly bytes: number
  readonly rules: () => readonly KeyedRule[]
}

/**
 * The rules `role` should have, given the ClusterRoles it may aggregate, sorted by name: ordered by selector, then by
 * name, each different rule once. Undefined if they are more than 10,000 or 1 MiB, or if the budget `work` is too small
 * for the bytes of the aggregated roles.
 */
export async function aggregatedRules(
  role: Pick<DecodedRole, 'name' | 'selectors'>,
  sources: readonly SourceRole[],
  { work, pause }: { readonly work: WorkBudget; readonly pause: Pause },
): Promise<readonly KeyedRule[] | undefined> {
  const selectors = role.selectors.map((source) => selectorFromObject(source))
  // Each role is listed under the first selector that matches it: a second match would add nothing.
  const matched: SourceRole[][] = selectors.map(() => [])
  for (const other of sources) {
    const due = pause()
    if (due !== undefined) await due
    if (other.name === role.name) continue
    const first = selectors.findIndex((selector) => selector.matches(other.labels))
    if (first >= 0) matched[first]?.push(other)
  }
  const rules = new Map<string, KeyedRule>()
  let length = 0
  for (const other of matched.flat()) {
    const due = pause()
    if (due !== undefined) await due
    if (!work.trySpendBytes(other.bytes)) return undefined
    for (const rule of other.rules()) {
      if (rules.has(rule.text)) continue
      length += rule.text.length
      if (rules.size === maxRules || length > maxLength) return undefined
      rules.set(rule.text, rule)
    }
  }
  return [...rules.values()]
}

/**
 * Whether one of these ClusterRoles aggregates from a ClusterRole with these labels. Undefined if they have more than
 * 1000 different selectors.
 */
export function aggregatesFrom(
  roles: readonly Pick<DecodedRole, 'selectors'>[],
): ((labels: Readonly<Record<string, string>>) => boolean) | undefined {
  const selectors = new Map<string, LabelSelector>()
  for (const source of roles.flatMap((role) => role.selectors)) {
    const text = canonical(source)
    if (!selectors.has(text)) selectors.set(text, selectorFromObject(source))
    if (selectors.size > maxSelectors) return undefined
  }
  const all = [...selectors.values()]
  return (labels) => all.some((selector) => selector.matches(labels))
}

/** Whether both are the same rules in the same order; the order of fields inside a rule does not matter. */
export function sameRules(a: readonly KeyedRule[], b: readonly KeyedRule[]): boolean {
  return a.length === b.length && a.every(({ text }, i) => text === b[i]?.text)
}

/** A rule with a text that is the same for equal rules, whatever the order of their fields. */
interface KeyedRule {
  readonly text: string
  readonly rule: unknown
}

interface DecodedRole {
  readonly name: string
  readonly rules: readonly KeyedRule[]
  /** Each different selector of its aggregation rule once; empty if its rules are not aggregated. */
  readonly selectors: readonly LabelSelectorSource[]
}

/** Maximum bytes of JSON of the roles that stay decoded, of all logical clusters together. */
const maxCachedBytes = 16 * 1024 * 1024
/** Memory of a decoded role besides its JSON. */
const overheadBytes = 1024

/** Decodes roles, and keeps the most recently used ones. */
class DecodedRoles {
  readonly #kept = new LRUCache<
    string,
    { readonly revision: number; readonly bytes: number; readonly role: DecodedRole }
  >({
    maxSize: maxCachedBytes,
    sizeCalculation: ({ bytes }) => bytes + overheadBytes,
  })
  /** Number of roles decoded so far. */
  decodings = 0

  of({ key, revision, bytes, object }: SelectedObject): DecodedRole {
    const id = `${key.cluster}/${key.name}`
    const known = this.#kept.get(id)
    if (known?.revision === revision) return known.role
    const role = decodeRole(object())
    this.decodings++
    this.#kept.set(id, { revision, bytes, role })
    return role
  }
}

/** The parts of a ClusterRole that aggregation needs. */
export function decodeRole(object: KubeObject): DecodedRole {
  const { aggregationRule, rules } = object
  const selectors = isJsonObject(aggregationRule) ? aggregationRule['clusterRoleSelectors'] : undefined
  const sources: LabelSelectorSource[] = Array.isArray(selectors) ? selectors.filter(isJsonObject) : []
  return {
    name: object.metadata.name ?? '',
    rules: (Array.isArray(rules) ? (rules as unknown[]) : []).map((rule) => ({ text: canonical(rule), rule })),
    selectors: [...new Map(sources.map((source) => [canonical(source), source])).values()],
  }
}

/** JSON with sorted keys and without empty lists. */
function canonical(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) => {
    if (!isJsonObject(part) || JSON.isRawJSON(part)) return part
    const kept = Object.entries(part).filter(([, item]) => !(Array.isArray(item) && item.length === 0))
    return Object.fromEntries(kept.sort(([a], [b]) => (a < b ? -1 : 1)))
  })
}
