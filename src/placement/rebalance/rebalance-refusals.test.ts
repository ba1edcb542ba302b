import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { historyAnnotation, type PlacedOn, type PlacementRebalance } from '#crds/index.ts'
import { applicableRules } from '#placement/rules/applicable-rules.ts'
import type { Candidate } from '#placement/rules/candidate.ts'
import { choiceOf, type Choice, type ChoiceInput } from '#placement/choose/choice.ts'
import { choose } from '#placement/choose/choose.ts'
import { mayRebalanceTo, whyNotRebalanced } from './rebalance-refusals.ts'
import { rebalanceGiveUpMs, type Rebalancing } from '#placement/rules/rebalance-rule.ts'

const nowMs = Date.parse('2026-01-01T12:00:00Z')
const candidate = (name: string, parts: Partial<Candidate> = {}): Candidate => ({
  name,
  ready: true,
  state: 'Active',
  admits: true,
  load: 0,
  ...parts,
})
const onEast: PlacedOn = { east: { state: 'Serving' } }

interface Given {
  readonly kind?: string
  readonly spec?: object
  readonly annotations?: Readonly<Record<string, string>>
  readonly namespaceAnnotations?: Readonly<Record<string, string>>
  /** `spec.rebalance` of a Placement of the administrators; null: their Placement does not have it. */
  readonly rebalance?: PlacementRebalance | null
  readonly placed?: PlacedOn
  readonly available?: number
  readonly budgets?: readonly KubeObject[]
}

function workloadOf({
  kind = 'Deployment',
  spec = {},
  annotations = {},
  placed = onEast,
  available = 2,
}: Given): KubeObject {
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: {
      name: 'web',
      annotations: {
        'kcp.dev/placed-on': JSON.stringify(placed),
        'status.kcp.dev/east': JSON.stringify({ availableReplicas: available }),
        ...annotations,
      },
    },
    spec: { replicas: 2, template: { metadata: { labels: { app: 'web' } }, spec: {} }, ...spec },
  }
}

function choiceFor(given: Given, parts: Partial<ChoiceInput> = {}): Choice {
  const { rebalance = {}, namespaceAnnotations } = given
  const metadata = { name: 'balance' }
  const spec = rebalance === null ? {} : { rebalance }
  return choiceOf({
    workload: workloadOf(given),
    namespace: 'shop',
    namespaceObject: {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name: 'shop', ...(namespaceAnnotations && { annotations: namespaceAnnotations }) },
    },
    rules: applicableRules(
      { ofTenant: [], ofAdmins: [{ apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata, spec }] },
      { clusterLabels: {}, namespaceLabels: {} },
    ),
    claims: [],
    members: () => [],
    candidates: [candidate('east'), candidate('west')],
    near: [],
    keyOf: (name) => name,
    nowMs,
    ...parts,
  })
}

function why(given: Given): string | undefined {
  const { placed: placedOn = onEast, budgets = [] } = given
  return whyNotRebalanced({ workload: workloadOf(given), choice: choiceFor(given), placedOn, budgets, nowMs })
}

const history = (cause: string, minutesAgo: number): Record<string, string> => {
  const time = new Date(nowMs - minutesAgo * 60_000).toISOString()
  return { [historyAnnotation]: JSON.stringify([{ time, from: ['east'], to: ['west'], cause, message: 'why' }]) }
}
const budget = (spec: object, status?: object): KubeObject => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web' },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
  ...(status && { status }),
})

describe('a workload is moved for balance', () => {
  it('if an admin turns that on and there is no reason against it', () => {
    expect(why({})).to.equal(undefined)
  })

  for (const { title, given } of [
    { title: 'its last move is older than the cool-down', given: { annotations: history('Drain', 61) } },
    { title: 'a budget allows a disruption', given: { budgets: [budget({ maxUnavailable: 1 })] } },
    {
      title: 'the budget that allows no disruption selects other pods',
      given: { budgets: [{ ...budget({ maxUnavailable: 0 }), spec: { selector: { matchLabels: { app: 'db' } } } }] },
    },
    {
      title: 'the annotation has another value than "never"',
      given: { annotations: { 'kcp.dev/rebalance': 'sometimes' } },
    },
  ])
    it(`if ${title}`, () => expect(why(given)).to.equal(undefined))
})

describe('a workload is not moved for balance', () => {
  const rows: readonly { readonly title: string; readonly given: Given; readonly message: string }[] = [
    { title: 'while no admin turns it on', given: { rebalance: null }, message: 'no Placement of the administrators' },
    { title: 'with mode Never', given: { rebalance: { mode: 'Never' } }, message: 'Placement "balance" of the admin' },
    {
      title: 'if it opts out',
      given: { annotations: { 'kcp.dev/rebalance': 'never' } },
      message: 'annotation kcp.dev/rebalance of the workload opts out',
    },
    {
      title: 'if its namespace opts out',
      given: { namespaceAnnotations: { 'kcp.dev/rebalance': 'never' } },
      message: 'annotation kcp.dev/rebalance of the namespace opts out',
    },
    {
      title: 'if its members are named',
      given: { annotations: { 'kcp.dev/clusters': 'east' } },
      message: 'its member clusters are named (annotation kcp.dev/clusters of the object)',
    },
    { title: 'if it is a StatefulSet', given: { kind: 'StatefulSet' }, message: 'must not run in two' },
    {
      title: 'if it is recreated',
      given: { spec: { strategy: { type: 'Recreate' } } },
      message: 'must not run in two',
    },
    { title: 'if it is a DaemonSet', given: { kind: 'DaemonSet' }, message: 'its kind has no replicas' },
    { title: 'if it is scaled to zero', given: { spec: { replicas: 0 } }, message: 'it has no pods' },
    { title: 'if it is held', given: { annotations: { 'kcp.dev/held': 'no room' } }, message: 'it is held' },
    {
      title: 'while it moves',
      given: { placed: { ...onEast, west: { state: 'Applied' } } },
      message: 'it has not settled',
    },
    { title: 'while pods are not available', given: { available: 1 }, message: 'not all its pods are available' },
    {
      title: 'within the cool-down after a move of any cause',
      given: { annotations: history('Drain', 59) },
      message: 'leaves it where it is until 2026-01-01T12:01:00Z',
    },
    ...[
      budget({ maxUnavailable: 0 }),
      budget({ maxUnavailable: '0%' }),
      budget({ minAvailable: '100%' }),
      budget({ minAvailable: 2 }),
      budget({ minAvailable: 1 }, { observedGeneration: 1, expectedPods: 2, disruptionsAllowed: 0 }),
    ].map((one) => ({
      title: `if a budget allows no disruption: ${JSON.stringify(one['status'] ?? one['spec'])}`,
      given: { budgets: [one] },
      message: 'PodDisruptionBudget "web" allows no disruption',
    })),
  ]
  for (const { title, given, message } of rows) it(title, () => expect(why(given)).to.contain(message))
})

describe('a divided workload', () => {
  const placed: PlacedOn = { east: { state: 'Serving', replicas: 1 }, west: { state: 'Serving', replicas: 1 } }
  const whyDivided = (division: 'Balanced' | 'ByCapacity'): string | undefined => {
    const spec = { rebalance: {}, replicas: { mode: 'Divide' as const, division } }
    const placement = {
      apiVersion: 'kcp.dev/v1alpha1' as const,
      kind: 'Placement' as const,
      metadata: { name: 'balance' },
    }
    const rules = applicableRules(
      { ofTenant: [], ofAdmins: [{ ...placement, spec }] },
      { clusterLabels: {}, namespaceLabels: {} },
    )
    // Naming the members is no reason against it here, because they share the replicas.
    const given = { placed, annotations: { 'kcp.dev/clusters': 'east,west' } }
    const choice = choiceFor(given, { rules })
    return whyNotRebalanced({ workload: workloadOf(given), choice, placedOn: placed, budgets: [], nowMs })
  }

  it('is divided again for balance if it is divided by capacity, and not otherwise', () => {
    expect(whyDivided('ByCapacity')).to.equal(undefined)
    expect(whyDivided('Balanced')).to.equal('its division does not follow capacity')
  })
})

describe('the target of a move for balance', () => {
  const way = { from: 'east', to: 'west', areJoined: true }
  const may = (parts: Partial<Choice>, areJoined = true): boolean =>
    mayRebalanceTo({ choice: { ...choiceFor({}), ...parts } }, { ...way, areJoined })
  const taint = (effect: 'NoSchedule' | 'PreferNoSchedule') => candidate('west', { taints: [{ key: 'gpu', effect }] })

  it('is a member that scores as well as the old one, however many copies it has', () => {
    expect(may({ candidates: [candidate('east'), candidate('west', { load: 9 })] })).to.equal(true)
  })
  for (const { title, given } of [
    {
      title: 'a member with a taint that is not tolerated',
      given: { candidates: [candidate('east'), taint('NoSchedule')] },
    },
    {
      title: 'a member with a taint PreferNoSchedule',
      given: { candidates: [candidate('east'), taint('PreferNoSchedule')] },
    },
    {
      title: 'a less preferred member',
      given: {
        candidates: [candidate('east', { labels: { disk: 'fast' } }), candidate('west')],
        demand: { ...choiceFor({}).demand, prefer: [{ weight: 1, labelSelector: { matchLabels: { disk: 'fast' } } }] },
      },
    },
    {
      title: 'a member that would make the spread over domains uneven',
      given: {
        candidates: [
          candidate('east', { labels: { zone: 'a' }, ownLoad: 1 }),
          candidate('west', { labels: { zone: 'b' }, ownLoad: 1 }),
        ],
        demand: { ...choiceFor({}).demand, spread: [{ topologyKey: 'zone', maxSkew: 1 }] },
      },
    },
  ])
    it(`is not ${title}`, () => expect(may(given)).to.equal(false))

  it('is not a member away from other workloads of the namespace, if pods of different members cannot reach each other', () => {
    expect([may({ near: ['east'] }, false), may({ near: ['east'] }), may({ near: ['west'] }, false)]).to.deep.equal([
      false,
      true,
      true,
    ])
  })
})

describe('a move for balance', () => {
  const names = (choice: Choice): readonly string[] => {
    const { wanted } = choose(choice)
    return wanted.kind === 'members' ? wanted.names : []
  }
  const both: PlacedOn = { east: { state: 'Serving' }, west: { state: 'Applied' } }
  const begins: Rebalancing = { from: 'east', to: 'west', message: 'why', isOver: false }

  it('continues from the history alone, so that a restart does not revert it', () => {
    expect(names(choiceFor({ placed: both, annotations: history('Rebalance', 5) }))).to.deep.equal(['west'])
  })

  for (const { title, given, parts = {} } of [
    { title: 'its history names another cause', given: { annotations: history('Edit', 5) } },
    { title: 'it has lasted too long', given: { annotations: history('Rebalance', rebalanceGiveUpMs / 60_000) } },
    { title: 'no Placement asks for it any more', given: { annotations: history('Rebalance', 5), rebalance: null } },
    {
      title: 'the new member stops answering',
      given: { annotations: history('Rebalance', 5) },
      parts: { candidates: [candidate('east'), candidate('west', { ready: false })] },
    },
  ])
    it(`goes back if ${title}`, () => {
      const choice = choiceFor({ placed: both, ...given }, parts)
      expect(names(choice)).to.deep.equal(['east'])
    })

  it('continues once the old copy drains, however long it has taken', () => {
    const placed: PlacedOn = { east: { state: 'Draining' }, west: { state: 'Serving' } }
    expect(names(choiceFor({ placed, annotations: history('Rebalance', 60) }))).to.deep.equal(['west'])
  })

  it('begins only if nothing refuses the new member', () => {
    const full = candidate('west', { limits: new Map([['pods', { nanos: 0n, format: 'DecimalSI' as const }]]) })
    expect(names(choiceFor({}, { rebalancing: begins }))).to.deep.equal(['west'])
    expect(names(choiceFor({}, { rebalancing: begins, candidates: [candidate('east'), full] }))).to.deep.equal(['east'])
    const named = { annotations: { 'kcp.dev/clusters': 'east' } }
    expect(names(choiceFor(named, { rebalancing: begins }))).to.deep.equal(['east'])
  })

  it('does not begin for a Placement of the tenant: only administrators turn it on', () => {
    const placement = { apiVersion: 'kcp.dev/v1alpha1' as const, kind: 'Placement' as const, metadata: { name: 'own' } }
    const rules = applicableRules(
      { ofTenant: [{ ...placement, spec: { rebalance: {} } }], ofAdmins: [] },
      { clusterLabels: {}, namespaceLabels: {} },
    )
    expect(choiceFor({}, { rules }).rebalance).to.equal(undefined)
    expect(choiceFor({}, { rules }).source).to.equal('no rule')
  })
})
