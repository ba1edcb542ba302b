// A model of the operator, the syncers and three members around the real decisions (plan, choose, move and copySeen):
// random edits, crashes between reading and writing, stale caches, members that go, are fenced and return. Invariants
// I1 to I11 hold at each step, but for I5, which is of the syncer (test/integration/syncer/deletion-guard.test.ts), and
// I7 (test/integration/capacity-model.test.ts). While two of the three members do not answer, nothing moves away from
// them.
import { expect } from 'chai'
import fc from 'fast-check'
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  hasCopy,
  lostAfterMs,
  memberStatusAnnotation,
  placedOn,
  sourceOf,
  syncerFinalizer,
  workloadKindOfObject,
  type PlacedCopy,
  type PlacedOn,
  type ServiceNetwork,
} from '#crds/index.ts'
import { decisionPatch, type DecisionPatch } from '#operator/placement/apply.ts'
import {
  currentMembers,
  failoverInMs,
  isFailoverFrozen,
  limitMs,
  noDemand,
  type Candidate,
  type Choice,
  type Demand,
  type DivideDemand,
} from '#placement/index.ts'
import { guards, type Gate } from '#placement/move/guards.ts'
import { copySeen } from '#operator/placement/copy-seen.ts'
import type { Observed } from '#operator/placement/observe.ts'
import { plan, type Plan } from '#operator/placement/plan.ts'

const names = ['a', 'b', 'c'] as const
type Name = (typeof names)[number]

/** What is really in a member. */
interface Truth {
  isUp: boolean
  downSince: number
  isFenced: boolean
  state: 'Active' | 'Draining'
  copy?: {
    source: string
    template: string
    first: number
    count: number
    leaving: boolean
    paused: boolean
    deleting: boolean
  }
  /** Ordinals, or numbers, of the pods that run, and whether each is ready. */
  readonly pods: Map<number, boolean>
  /** Those of them that have a former template. */
  readonly old: Set<number>
  /** The version of the workload that its syncer knows. */
  view: number
}

interface Rules {
  readonly kind: 'Deployment' | 'StatefulSet'
  readonly isFlat: boolean
  readonly isDivided?: boolean
  /** An Ingress with addresses of each member leads to it. */
  readonly isExternal?: boolean
  /** Ready pods may fail. */
  readonly podsFail: boolean
}

/** How the operator writes; a test breaks it. */
let guardedPatch = decisionPatch
/** When failover stops; a test breaks it. */
let freezes = isFailoverFrozen

type Broken = (invariant: string, why: string) => void

class World {
  readonly rules: Rules
  readonly versions: KubeObject[]
  readonly service: KubeObject
  readonly members: Record<Name, Truth>
  /** Versions that two operators know. */
  readonly operators = [0, 0]
  readonly reconciled = new Set<string>()
  now = Date.parse('2026-01-01T00:00:00Z')
  target: readonly Name[] | 'best' | 'none' = 'best'

  constructor(rules: Rules) {
    this.rules = rules
    const metadata = { name: 'web', resourceVersion: '0', annotations: {} }
    this.versions = [{ apiVersion: 'apps/v1', kind: rules.kind, metadata, spec: { replicas: 3 } }]
    this.service = { apiVersion: 'v1', kind: 'Service', metadata: { name: 'web', annotations: {} }, spec: {} }
    const truth = (): Truth => ({
      isUp: true,
      downSince: 0,
      isFenced: false,
      state: 'Active',
      pods: new Map(),
      old: new Set(),
      view: 0,
    })
    this.members = { a: truth(), b: truth(), c: truth() }
  }

  get latest(): KubeObject {
    return this.versions.at(-1)!
  }

  get replicas(): number {
    return (this.latest['spec'] as { replicas: number }).replicas
  }

  /** Writes the workload, unless somebody else has written it since `version`. */
  write(version: number, change: (object: KubeObject) => void): boolean {
    if (version !== this.versions.length - 1) return false
    const next = cloneJson(this.latest)
    change(next)
    if (JSON.stringify(next) === JSON.stringify(this.latest)) return true
    next.metadata.resourceVersion = String(this.versions.length)
    this.versions.push(next)
    return true
  }

  observed(object: KubeObject): Observed {
    const placed = placedOn(object)
    const { replicas } = object['spec'] as { replicas: number }
    const divide: DivideDemand = { replicas, division: 'Balanced', bounds: [], perPod: new Map(), surge: () => 0 }
    const demand: Demand = {
      ...noDemand,
      runsOnce: this.rules.kind === 'StatefulSet',
      tolerationSeconds: 60,
      ...(this.rules.isDivided && { divide }),
    }
    const unreachable = names.filter((name) => !this.members[name].isUp).length
    const isFrozen = freezes({ unreachable, all: names.length })
    const candidates: Candidate[] = names.map((name) => {
      const { isUp, downSince, isFenced, state } = this.members[name]
      const away = isUp ? {} : { unreachableMs: this.now - downSince, isFailoverFrozen: isFrozen }
      return { name, ready: isUp, state, admits: true, load: 0, isFenced, ...away }
    })
    const choice: Choice = {
      namespace: 'shop',
      target:
        this.target === 'best' || this.target === 'none'
          ? { kind: this.target }
          : { kind: 'members', names: this.target },
      source: 'the model',
      placementKey: undefined,
      demand,
      candidates,
      current: currentMembers(placed),
      serving: names.filter((name) => placed[name]?.state === 'Serving'),
      near: [],
      volumesIn: [],
      move: this.rules.kind === 'Deployment' ? 'makeBeforeBreak' : 'breakBeforeMake',
      scale: {
        replicas,
        start: 0,
        hasOrdinals: this.rules.kind === 'StatefulSet',
      },
      hasEnded: false,
    }
    const networkOf = (): ServiceNetwork => (this.rules.isFlat ? 'Flat' : 'None')
    const isReady = (name: string): boolean => this.members[name as Name].isUp
    return {
      choice,
      placedOn: placed,
      networkOf,
      siblings: () => [],
      seen: (name) => {
        const candidate = candidates.find((one) => one.name === name)!
        const { unreachableMs = 0, isFenced } = candidate
        const failover = failoverInMs(candidate, demand)
        const lost = failover === undefined ? {} : { failoverAtMs: this.now - unreachableMs + limitMs(demand) }
        return {
          ...copySeen(object, name, { services: [], networkOf, isReady }),
          ...(this.rules.isExternal && { external: true }),
          ...(isFenced && { gone: true, endpointsGone: true, isFenced: true }),
          ...(unreachableMs >= lostAfterMs && { lost }),
        }
      },
    }
  }

  /** One reconcile of an operator, which may know an old version, and may crash before it writes. */
  operate(operator: 0 | 1, lag: number, crashes: boolean, broken: Broken): void {
    const known = Math.max(this.operators[operator] ?? 0, this.versions.length - 1 - lag)
    this.operators[operator] = known
    const observed = this.observed(this.versions[known]!)
    const next = plan(observed, { nowMs: this.now, drainSeconds: 10, soakSeconds: 2, forwardSeconds: 60 })
    this.reconciled.add(stateText(observed.placedOn, this))
    if (crashes || next.placedOn === observed.placedOn) return
    const patch = guardedPatch(workloadKindOfObject(this.latest)!, this.versions[known]!, {
      ...{ after: next.placedOn, held: next.decision.held, move: undefined },
      now: new Date(this.now).toISOString(),
      isReady: (name) => this.members[name as Name].isUp,
    })
    if (!this.#patch(patch)) return
    if (this.versions.at(-2) !== this.versions[known])
      broken('I3', `a decision about version ${known} replaces version ${this.versions.length - 2}`)
    this.#checkDecision(observed, next, broken)
  }

  /** A merge patch, as the API server takes it: a resourceVersion in it must be the present one. */
  #patch({ metadata: { resourceVersion, annotations, finalizers }, status }: DecisionPatch): boolean {
    if (resourceVersion !== undefined && resourceVersion !== this.latest.metadata.resourceVersion) return false
    return this.write(this.versions.length - 1, (object) => {
      const merged = Object.entries({ ...object.metadata.annotations, ...annotations })
      const kept = merged.filter((entry): entry is [string, string] => entry[1] !== null)
      object.metadata.annotations = Object.fromEntries(kept)
      if (finalizers !== undefined) object.metadata.finalizers = [...finalizers]
      if (status !== undefined) object['status'] = status
    })
  }

  #checkDecision({ placedOn: before, seen }: Observed, next: Plan, broken: Broken): void {
    const after = next.placedOn
    const { wanted } = next.decision
    const live = (placed: PlacedOn, name: string): boolean =>
      ['Syncing', 'Applied', 'Available', 'Serving'].includes(placed[name]?.state ?? '')
    const served = (placed: PlacedOn, name: string): number =>
      live(placed, name) ? Math.min(seen(name).ready ?? 0, placed[name]?.replicas ?? this.replicas) : 0
    const sum = (placed: PlacedOn): number => names.reduce((total, name) => total + served(placed, name), 0)
    const lets = names.filter((name) => live(before, name) && !live(after, name) && !isAway(after[name]?.state))
    if (wanted.kind === 'undecided' && lets.length > 0)
      broken('I2', `without a decision, ${lets.join()} ends: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`)
    if (wanted.kind === 'none') return
    this.#checkFreeze(before, after, broken)
    this.#checkAddresses(before, after, broken)
    this.#checkPauses(next, broken)
    if (this.rules.kind === 'StatefulSet') {
      this.#checkOrdinals(before, after, broken)
      return
    }
    this.#checkShares(before, after, seen, broken)
    // What a member that does not answer takes with it is no action of ours.
    const given = names.filter((name) => !isAway(after[name]?.state) && served(before, name) > served(after, name))
    if (given.length > 0 && sum(after) < Math.min(sum(before), this.replicas))
      broken('I1', `${sum(after)} of ${this.replicas} serve: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`)
  }

  /** A divided workload gives up a ready pod only when all members have known that it takes no requests. */
  #checkShares(before: PlacedOn, after: PlacedOn, seen: Observed['seen'], broken: Broken): void {
    for (const name of names) {
      const [was, is] = [before[name], after[name]]
      const { available, ready = 0 } = seen(name)
      if (was?.state !== 'Serving' || is?.state !== 'Serving' || !available) continue
      const [from, to] = [was.replicas ?? this.replicas, is.replicas ?? this.replicas]
      const isTold = was.shrinking?.to === to && was.shrinking.isKnown
      if (this.rules.isDivided && Math.min(ready, from) > to && to < from && !isTold)
        broken('I9', `pods end that take requests: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`)
    }
  }

  /** What runs in members that do not answer starts nowhere else while they are most of all members. */
  #checkFreeze(before: PlacedOn, after: PlacedOn, broken: Broken): void {
    if (this.target !== 'best' || this.rules.isDivided || names.filter((name) => !this.members[name].isUp).length < 2)
      return
    const copies = names.filter((name) => before[name] !== undefined)
    const isSilent = (name: Name): boolean => {
      const { isUp, isFenced, state } = this.members[name]
      // An admin who fences a member gives up its copies, also if the fence is taken away before they are replaced.
      const isGivenUp = isFenced || before[name]?.state === 'Fenced'
      return !isUp && !isGivenUp && state === 'Active' && isAway(before[name]?.state)
    }
    const started = names.filter((name) => before[name] === undefined && after[name] !== undefined)
    if (copies.length > 0 && copies.every(isSilent) && started.length > 0)
      broken('freeze', `it starts in ${started.join()}: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`)
  }

  /** A member that clients come to goes on forwarding after its copy, for a while. */
  #checkAddresses(before: PlacedOn, after: PlacedOn, broken: Broken): void {
    const serves = (name: Name): boolean => before[name]?.state === 'Serving'
    for (const name of names) {
      const isAlone = !names.some((other) => other !== name && serves(other))
      const ends = before[name]?.state === 'Draining' && after[name]?.state === 'Terminating'
      const isUnreached = !this.members[name].isUp
      if (this.rules.isExternal && this.rules.isFlat && ends && !isAlone && !isUnreached)
        broken('I11', `${name} stops forwarding: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`)
    }
  }

  /** A rollout ends no pods of a copy that another one replaces, unless that has lasted too long. */
  #checkPauses({ placedOn: after, decision: { wanted, held } }: Plan, broken: Broken): void {
    const isHeld = held.some(({ reason }) => reason !== 'MoveStalled')
    const isReplaced = (name: string): boolean =>
      wanted.kind === 'members' && !isHeld && after[name]?.wait?.gate === 'ReplacementServes'
    // Of a StatefulSet whose pods are in several members, rollouts wait longer: see ordinals.test.ts.
    const isByOrdinal = this.rules.kind === 'StatefulSet' && this.rules.isFlat
    for (const name of names) {
      const { paused = false, start, wait } = after[name] ?? {}
      if (isByOrdinal && start !== undefined) continue
      if (paused !== (isReplaced(name) && this.now < Date.parse(wait?.until ?? '')))
        broken('I10', `${name} ${paused ? 'is' : 'is not'} paused: ${JSON.stringify(after)}`)
    }
  }

  /** Of a StatefulSet that moves ordinal by ordinal, one is away at most. */
  #checkOrdinals(before: PlacedOn, after: PlacedOn, broken: Broken): void {
    if (!this.rules.isFlat) return
    for (const name of names) {
      const { ending } = before[name] ?? {}
      if (!hasCopy(before[name]) || !hasCopy(after[name])) continue
      const left = this.#ordinals(before[name]).filter((ordinal) => !this.#ordinals(after[name]).includes(ordinal))
      if (left.some((ordinal) => ordinal !== ending?.ordinal || !ending.isKnown))
        broken('I9', `a pod ends that takes requests: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`)
    }
    const given = (placed: PlacedOn, name: string): number =>
      hasCopy(placed[name]) ? Math.min(placed[name]?.replicas ?? this.replicas, this.replicas) : 0
    const live = (placed: PlacedOn): number =>
      names.reduce((total, name) => total + (placed[name]?.state === 'Draining' ? 0 : given(placed, name)), 0)
    const isLeft = names.some((name) => isAway(before[name]?.state) || isAway(after[name]?.state))
    if (!isLeft && live(after) < Math.min(live(before), this.replicas - 1))
      broken('I1', `more than one ordinal is away: ${JSON.stringify(before)} -> ${JSON.stringify(after)}`)
  }

  /** The ordinals of a copy that the spec asks for. */
  #ordinals({ start = 0, replicas = this.replicas }: PlacedCopy = { state: 'Assumed', replicas: 0 }): number[] {
    return Array.from({ length: replicas }, (_, i) => start + i).filter((ordinal) => ordinal < this.replicas)
  }

  /** One reconcile of the syncer of a member. `lag`: versions that it does not know yet. */
  sync(name: Name, lag: number, broken: Broken): void {
    const member = this.members[name]
    if (!member.isUp) return
    member.view = Math.max(member.view, this.versions.length - 1 - lag)
    const object = this.versions[member.view]!
    const decided = placedOn(object)[name]
    const finalizer = syncerFinalizer(name)
    const finalizers = object.metadata.finalizers ?? []
    if (hasCopy(decided)) {
      if (!finalizers.includes(finalizer))
        return void this.write(member.view, ({ metadata }) => (metadata.finalizers = [...finalizers, finalizer]))
      if (member.copy?.deleting) return
      const { replicas, template = '' } = object['spec'] as { replicas: number; template?: string }
      if (member.copy && member.copy.template !== template) for (const pod of member.pods.keys()) member.old.add(pod)
      member.copy = {
        source: sourceOf(object['spec'], decided),
        template,
        first: decided?.start ?? 0,
        count: decided?.replicas ?? replicas,
        leaving: decided?.state === 'Draining',
        paused: decided?.state === 'Draining' || decided?.paused === true,
        deleting: false,
      }
    } else if (member.copy !== undefined) {
      if (hasCopy(placedOn(this.latest)[name])) broken('I4', `the copy in ${name} is deleted, and decided to be there`)
      member.copy.deleting = true
    } else if (finalizers.includes(finalizer)) {
      const isForwarding = decided?.state === 'Forwarding'
      this.write(member.view, ({ metadata }) => {
        if (!isForwarding) metadata.finalizers = finalizers.filter((one) => one !== finalizer)
        Reflect.deleteProperty(metadata.annotations ?? {}, memberStatusAnnotation(name))
      })
    }
  }

  /** The syncer reports what its cache of the member says. */
  report(name: Name): void {
    const { isUp, copy, pods, old } = this.members[name]
    if (!isUp || copy === undefined || copy.leaving) return
    const ready = [...pods.values()].filter(Boolean).length
    const updated = Math.min(pods.size - old.size, copy.count)
    const status = { observed: copy.source, replicas: pods.size, availableReplicas: ready, updatedReplicas: updated }
    const text = JSON.stringify(status)
    this.write(this.versions.length - 1, ({ metadata }) => {
      metadata.annotations = { ...metadata.annotations, [memberStatusAnnotation(name)]: text }
    })
  }

  /** One step of the controllers and kubelets of a member, which go on without us. */
  run(name: Name, broken: Broken): void {
    const { copy, pods, old } = this.members[name]
    if (this.members[name].isFenced) return
    const first = copy?.first ?? 0
    const wanted = copy === undefined || copy.deleting ? [] : Array.from({ length: copy.count }, (_, i) => first + i)
    const extra = [...pods.keys()].filter((pod) => !wanted.includes(pod)).at(-1)
    const missing = wanted.find((pod) => !pods.has(pod))
    const starting = [...pods].find(([, isReady]) => !isReady)?.[0]
    const replaced = copy?.paused ? undefined : [...old].at(-1)
    const end = (pod: number): void => [pods, old].forEach((all) => all.delete(pod))
    if (extra !== undefined) end(extra)
    else if (starting !== undefined) pods.set(starting, true)
    else if (missing !== undefined) pods.set(missing, false)
    // A rollout: one pod after the other.
    else if (replaced !== undefined && !copy?.deleting) end(replaced)
    else if (copy?.deleting) delete this.members[name].copy
    this.#checkPods(broken)
  }

  #checkPods(broken: Broken): void {
    if (this.rules.kind !== 'StatefulSet') return
    const all = names.flatMap((name) => [...this.members[name].pods.keys()])
    if (new Set(all).size < all.length) broken('I6', `a pod runs twice: ${podsText(this)}`)
    const where = names.filter((name) => this.members[name].pods.size > 0)
    if (!this.rules.isFlat && where.length > 1) broken('I6', `pods in two members: ${podsText(this)}`)
  }
}

const isAway = (state: string | undefined): boolean => state === 'Lost' || state === 'Fenced'
const podsText = ({ members }: World): string =>
  names.map((name) => `${name}=${[...members[name].pods].map(String).join(' ')}`).join('; ')
const stateText = (placed: PlacedOn, { members }: World): string =>
  names
    .map((name) => {
      const { state, replicas, start, wait } = placed[name] ?? {}
      const { isUp, isFenced, pods, copy } = members[name]
      const ready = [...pods.values()].filter(Boolean).length
      return [state, replicas, start, wait?.gate, isUp, isFenced, pods.size, ready, copy?.deleting].join()
    })
    .join(';')

const steps = fc.array(
  fc.record({
    what: fc.constantFrom(
      ...(['operate', 'operate', 'operate', 'sync', 'sync', 'sync', 'report', 'report', 'report'] as const),
      ...(['round', 'round', 'round', 'round', 'round', 'round', 'round', 'round'] as const),
      ...([
        'run',
        'run',
        'run',
        'run',
        'edit',
        'edit',
        'scale',
        'roll',
        'roll',
        'drain',
        'down',
        'up',
        'fence',
        'fail',
        'outage',
      ] as const),
    ),
    name: fc.constantFrom(...names),
    n: fc.nat(11),
    laterMs: fc.constantFrom(0, 0, 500, 3000, 11_000, 31_000),
  }),
  { minLength: 40, maxLength: 150 },
)
type Step = (typeof steps extends fc.Arbitrary<infer T> ? T : never)[number]

const targets: World['target'][] = [
  'best',
  ['a'],
  ['b'],
  ['c'],
  ['b'],
  'none',
  ['a'],
  'best',
  ['c'],
  'best',
  ['b'],
  ['a'],
]

function act(world: World, { what, name, n, laterMs }: Step, broken: Broken): void {
  const member = world.members[name]
  world.now += laterMs
  if (what === 'operate') world.operate(n % 3 === 0 ? 1 : 0, n % 4, n === 5, broken)
  else if (what === 'round') round(world, n % 4, broken)
  else if (what === 'sync') world.sync(name, n % 3, broken)
  else if (what === 'report') world.report(name)
  else if (what === 'run') world.run(name, broken)
  else if (what === 'edit') world.target = targets[n]!
  else if (what === 'scale')
    world.write(
      world.versions.length - 1,
      (object) => (object['spec'] = { ...(object['spec'] as object), replicas: 1 + (n % 5) }),
    )
  else if (what === 'roll')
    world.write(
      world.versions.length - 1,
      (object) => (object['spec'] = { replicas: world.replicas, template: `${n}` }),
    )
  else if (what === 'drain') member.state = n < 6 ? 'Active' : 'Draining'
  else if (what === 'down' && member.isUp) Object.assign(member, { isUp: false, downSince: world.now })
  // Its syncer acts on complete caches only.
  else if (what === 'up') Object.assign(member, { isUp: true, isFenced: false, view: world.versions.length - 1 })
  else if (what === 'fence' && !member.isUp) {
    // Somebody has made sure that nothing is left there.
    member.isFenced = true
    member.pods.clear()
    member.old.clear()
    delete member.copy
  } else if (what === 'fail' && world.rules.podsFail)
    for (const pod of member.pods.keys()) member.pods.set(pod, n % 2 === 0)
  else if (what === 'outage') {
    const copies = (): string => names.map((one) => String(world.members[one].copy?.deleting)).join()
    const before = copies()
    world.now += 600_000
    if (copies() !== before) broken('I8', 'copies changed while none of our processes ran')
  }
}

/** Everybody gets on by one step, knowing versions that are `lag` old. */
function round(world: World, lag: number, broken: Broken): void {
  world.operate(0, lag, false, broken)
  for (const name of names) {
    world.sync(name, lag, broken)
    world.run(name, broken)
    world.report(name)
  }
}

/** Everything answers and nobody edits any more: the workload must arrive. */
function settle(world: World, broken: Broken): void {
  for (const name of names)
    Object.assign(world.members[name], {
      isUp: true,
      isFenced: false,
      state: 'Active',
      view: world.versions.length - 1,
    })
  for (let i = 0; i < 400; i++) {
    world.now += 5000
    round(world, 0, broken)
    if (isSettled(world)) return
  }
  broken(
    'liveness',
    `it does not arrive at ${String(world.target)}: ${JSON.stringify(placedOn(world.latest))}; ${podsText(world)}`,
  )
}

function isSettled({ latest, target, replicas, members, rules: { isDivided } }: World): boolean {
  const copies = Object.entries(placedOn(latest))
  const running = names.reduce((sum, name) => sum + members[name].pods.size - members[name].old.size, 0)
  if (target === 'none') return copies.length === 0 && running === 0
  if (isDivided && target === 'best')
    return (
      copies.every(([, { state, wait, shrinking }]) => state === 'Serving' && !wait && !shrinking) &&
      running === replicas
    )
  const arrived = copies.length === 1 && copies[0]?.[1].state === 'Serving' && copies[0][1].wait === undefined
  return arrived && running === replicas && (target === 'best' || copies[0]?.[0] === target[0])
}

const rules: Record<string, Rules> = {
  'a Deployment': { kind: 'Deployment', isFlat: true, podsFail: true },
  'a Deployment with an Ingress': { kind: 'Deployment', isFlat: true, isExternal: true, podsFail: true },
  'a divided Deployment': { kind: 'Deployment', isFlat: true, isDivided: true, podsFail: true },
  'a StatefulSet, ordinal by ordinal': { kind: 'StatefulSet', isFlat: true, podsFail: true },
  'a StatefulSet as a whole': { kind: 'StatefulSet', isFlat: false, podsFail: true },
}

const runs = process.env['KCP_TEST_LONG'] === '1' ? 4000 : 250

/**
 * Plays random stories. Returns the number of distinct states; throws with the name of an invariant that was broken.
 */
function play(of: Rules, numRuns: number, only = /./): number {
  const reconciled = new Set<string>()
  const broken: Broken = (invariant, why) => {
    if (only.test(invariant)) throw new Error(`${invariant}: ${why}`)
  }
  const property = fc.property(steps, (story) => {
    const world = new World(of)
    for (const step of story) act(world, step, broken)
    settle(world, broken)
    for (const state of world.reconciled) reconciled.add(state)
  })
  fc.assert(property, { numRuns, endOnFailure: true, includeErrorInReport: true })
  return reconciled.size
}

describe('moves in a model with crashes, stale caches and members that go and return', function () {
  this.timeout(process.env['KCP_TEST_LONG'] === '1' ? 1_800_000 : 120_000)
  for (const [title, of] of Object.entries(rules))
    it(`keep the invariants for ${title}, and it arrives`, () => {
      const reconciled = play(of, runs)
      console.log(`      ${reconciled} states visited in ${runs} stories`)
      expect(reconciled).to.be.greaterThan(500)
    })

  it('notice by I3 that a decision is written over what somebody else has written', () => {
    guardedPatch = (...decided) => {
      const { metadata, ...rest } = decisionPatch(...decided)
      return { ...rest, metadata: { ...metadata, resourceVersion: undefined } }
    }
    try {
      expect(() => play(rules['a Deployment']!, 2000, /I3/)).to.throw(/\bI3: /)
    } finally {
      guardedPatch = decisionPatch
    }
  })

  it('notice that failover goes on while most members do not answer', () => {
    freezes = () => false
    try {
      expect(() => play(rules['a Deployment']!, 2000, /freeze/)).to.throw(/\bfreeze: /)
    } finally {
      freezes = isFailoverFrozen
    }
  })

  const yes = (): boolean => true
  for (const { wrong, of, invariant } of [
    { wrong: { ReplacementServes: yes, NothingElseServes: () => false }, of: 'a Deployment', invariant: 'I1' },
    { wrong: { SuccessorKnown: yes }, of: 'a StatefulSet as a whole', invariant: 'I2' },
    { wrong: { NothingElsewhere: yes }, of: 'a StatefulSet as a whole', invariant: 'I6' },
    { wrong: { CopyGone: yes }, of: 'a StatefulSet as a whole', invariant: 'I6' },
    { wrong: { AddressesKnown: () => false }, of: 'a Deployment with an Ingress', invariant: 'I11' },
    { wrong: { OrdinalsMoved: yes }, of: 'a StatefulSet, ordinal by ordinal', invariant: 'I1' },
  ] as { wrong: Partial<Record<Gate, () => boolean>>; of: string; invariant: string }[])
    it(`notice by ${invariant} that these guards are wrong: ${Object.keys(wrong).join(', ')}`, () => {
      const right = Object.keys(wrong).map((gate) => [gate as Gate, guards[gate as Gate].met] as const)
      for (const [gate, met] of Object.entries(wrong)) guards[gate as Gate].met = met
      try {
        expect(() => play(rules[of]!, 2000, new RegExp(invariant))).to.throw(new RegExp(`\\b${invariant}: `))
      } finally {
        for (const [gate, met] of right) guards[gate].met = met
      }
    })
})
