// The scheduler and the move engine's loop: one visit decides for one workload and writes the decision on it.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import { systemClock, timestamp, type Clock } from '../../async/index.ts'
import { clusterInKey, parseKey, type DeepReadonly } from '../../client/index.ts'
import {
  heldAnnotation,
  maxPlacedNamespaceLength,
  placedOn,
  placedOnAnnotation,
  type PlacedOn,
} from '../../crds/index.ts'
import { move, type Decision, type Rejection } from '../../placement/index.ts'
import { createKeyQueue, runController, type Outcome } from '../../reconcile/index.ts'
import type { OperatorContext, OperatorController } from '../operator-context.ts'
import { spaceOf } from './key-index.ts'
import { seeCopy } from './observe.ts'
import { followWorld } from './reasons.ts'
import { releaseGone, unknownMembers } from './release-gone.ts'
import { World } from './world.ts'

export interface PlacementDeps {
  /** How long a copy goes on after it takes no new traffic. Default 10. */
  readonly drainSeconds?: number
  /** How long a copy serves before another one drains. Default 2: kube-proxy needs about one to follow. */
  readonly soakSeconds?: number
  readonly clock?: Clock
}

const deployments = { group: 'apps', version: 'v1', resource: 'deployments' } as const
const events = { group: '', version: 'v1', resource: 'events' } as const

export function placementController(deps: PlacementDeps = {}): OperatorController {
  return {
    name: 'placement',
    async run(context, { signal, started }) {
      await using world = new World(context, signal)
      using queue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterInKey })
      await world.synced(signal)
      const end = followWorld(world, (key) => queue.add(key))
      try {
        started()
        const scheduler = new Scheduler(context, world, deps)
        await runController({
          name: 'placement',
          queue,
          workers: 8,
          reconcile: async (key, life) => await scheduler.reconcile(key, life),
          log: context.log,
          signal,
        })
      } finally {
        end()
      }
    },
  }
}

class Scheduler {
  readonly #context: OperatorContext
  readonly #world: World
  readonly #deps: Required<PlacementDeps>

  constructor(
    context: OperatorContext,
    world: World,
    { drainSeconds = 10, soakSeconds = 2, clock = systemClock }: PlacementDeps,
  ) {
    this.#context = context
    this.#world = world
    this.#deps = { drainSeconds, soakSeconds, clock }
  }

  async reconcile(key: string, signal: AbortSignal): Promise<Outcome> {
    const workload = this.#world.deployments.store.get(key)
    if (workload !== undefined && (await this.#release(key, workload, signal))) return {}
    // One that is deleted is the syncers' to take away: its finalizers say where it still is.
    if (workload === undefined || workload.metadata.deletionTimestamp !== undefined) return {}
    const decision = this.#decide(key, workload)
    if (decision === undefined) return {}
    const before = placedOn(workload as KubeObject)
    const services = this.#world.servicesOf(spaceOf(key))
    const isFlat = (member: string): boolean => this.#world.isFlat(member)
    const isReady = (member: string): boolean => this.#world.isReady(member)
    const { placedOn: after, requeueAfterMs } = move({
      now: this.#deps.clock.now(),
      placedOn: before,
      decision,
      seen: (member) => seeCopy(workload, member, { services, isFlat, isReady }),
      mayDrain: (member) => isFlat(member) || this.#neighboursServeElsewhere(key, member),
      drainSeconds: this.#deps.drainSeconds,
      soakSeconds: this.#deps.soakSeconds,
    })
    await this.#write(key, workload, { before, after, decision }, signal)
    return requeueAfterMs === undefined ? {} : { requeueAfterSeconds: requeueAfterMs / 1000 }
  }

  /** True where something was released: the change that it made brings the workload back. */
  async #release(key: string, workload: DeepReadonly<KubeObject>, signal: AbortSignal): Promise<boolean> {
    const members = unknownMembers(workload, (member) => this.#world.members.store.get(member) !== undefined)
    if (members.length === 0) return false
    const { cluster = '', namespace = '', name } = parseKey(key)
    const { clusters, virtual, log } = this.#context
    const gone = await releaseGone({ clusters, client: virtual(`/clusters/${cluster}`), workload, members, signal })
    if (gone.length > 0) log.warn('forgot members that were removed', { cluster, namespace, name, members: gone })
    return gone.length > 0
  }

  #decide(key: string, workload: DeepReadonly<KubeObject>): Decision | undefined {
    const { namespace = '' } = parseKey(key)
    if (namespace.length <= maxPlacedNamespaceLength) return this.#world.decide(key, workload)
    const message = `namespace "${namespace}" has more than ${maxPlacedNamespaceLength} characters`
    const rejection: Rejection = { cluster: '', reason: 'NamespaceNameTooLong', message }
    return { wanted: { kind: 'undecided' }, held: [rejection], rejected: [rejection] }
  }

  /**
   * Where pods of members can't reach each other a namespace moves whole: nothing leaves a member before all that is to
   * leave it serves elsewhere.
   */
  #neighboursServeElsewhere(key: string, member: string): boolean {
    for (const other of this.#world.workloadKeys(spaceOf(key))) {
      const workload = this.#world.deployments.store.get(other)
      if (other === key || workload === undefined || workload.metadata.deletionTimestamp !== undefined) continue
      const placed = placedOn(workload as KubeObject)
      if (placed[member] === undefined || ['Held', 'Draining', 'Terminating'].includes(placed[member].state)) continue
      const wanted = this.#world.decide(other, workload)?.wanted
      if (wanted?.kind === 'none' || (wanted?.kind === 'members' && wanted.names.includes(member))) continue
      if (!Object.entries(placed).some(([name, { state }]) => name !== member && state === 'Serving')) return false
    }
    return true
  }

  async #write(
    key: string,
    workload: DeepReadonly<KubeObject>,
    { before, after, decision }: { before: PlacedOn; after: PlacedOn; decision: Decision },
    signal: AbortSignal,
  ): Promise<void> {
    const { cluster = '', namespace = '', name } = parseKey(key)
    const held = decision.held.map(({ message }) => message).join('; ')
    const heldBefore = workload.metadata.annotations?.[heldAnnotation] ?? ''
    const isTold = placedCondition(workload)?.message === (held === '' ? undefined : held)
    if (after === before && held === heldBefore && isTold) return
    const placed = Object.keys(after).length === 0 ? null : JSON.stringify(after)
    const annotations = { [placedOnAnnotation]: placed, [heldAnnotation]: held === '' ? null : held }
    const metadata = { resourceVersion: workload.metadata.resourceVersion, annotations }
    const client = this.#context.virtual(`/clusters/${cluster}`)
    const written = await client.patch<KubeObject>(deployments, { namespace, name }, 'merge', { metadata }, { signal })
    if (!isTold) await this.#writeCondition(key, written, decision, signal)
    const states = Object.fromEntries(Object.entries(after).map(([member, { state }]) => [member, state]))
    this.#context.log.info('placed a workload', { cluster, namespace, name, states })
    if (held !== '' && held !== heldBefore) await this.#tell(key, workload, decision, signal)
  }

  /** Condition Placed is there, and False, while somebody's wish can't be met: what people and tools look at first. */
  async #writeCondition(key: string, workload: KubeObject, { held }: Decision, signal: AbortSignal): Promise<void> {
    const { cluster = '', namespace = '', name } = parseKey(key)
    const { conditions = [] } = (workload['status'] ?? {}) as { conditions?: { type: string }[] }
    const now = timestamp(this.#deps.clock.now())
    const placed = {
      type: 'Placed',
      status: 'False',
      reason: held[0]?.reason ?? 'Held',
      message: held.map(({ message }) => message).join('; '),
      lastTransitionTime: now,
      lastUpdateTime: now,
    }
    const others = conditions.filter(({ type }) => type !== placed.type)
    const status = { conditions: held.length === 0 ? others : [...others, placed] }
    const patch = { metadata: { resourceVersion: workload.metadata.resourceVersion }, status }
    const client = this.#context.virtual(`/clusters/${cluster}`)
    await client.patch(deployments, { namespace, name }, 'merge', patch, { subresource: 'status', signal })
  }

  async #tell(key: string, workload: DeepReadonly<KubeObject>, { held }: Decision, signal: AbortSignal): Promise<void> {
    const { cluster = '', namespace = '', name } = parseKey(key)
    const now = timestamp(this.#deps.clock.now())
    const { uid = '', resourceVersion = '' } = workload.metadata
    const event: KubeObject = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { namespace, generateName: `${name}.` },
      involvedObject: { apiVersion: 'apps/v1', kind: 'Deployment', namespace, name, uid, resourceVersion },
      type: 'Warning',
      reason: held[0]?.reason ?? 'Held',
      message: held.map(({ message }) => message).join('; '),
      source: { component: 'kcp-placement' },
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    }
    try {
      await this.#context.virtual(`/clusters/${cluster}`).create(events, event, { signal })
    } catch (error) {
      if (!isStatusError(error)) throw error
      this.#context.log.debug('could not write an event', { cluster, namespace, name, error })
    }
  }
}

function placedCondition(workload: DeepReadonly<KubeObject>): { readonly message?: string } | undefined {
  const { conditions = [] } = (workload['status'] ?? {}) as {
    conditions?: readonly { type: string; message?: string }[]
  }
  return conditions.find(({ type }) => type === 'Placed')
}
