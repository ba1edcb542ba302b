// The explanation of objects, member by member and wait by wait.
import { expect } from 'chai'
import { build } from 'esbuild'
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { heldAnnotation, historyAnnotation, memberAnnotation, placedOnAnnotation } from '#crds/index.ts'
import { waitText } from '#placement/index.ts'
import * as copies from './copies.ts'
import { explainCluster, explainMember, explainObject, findingsText, type Finding, type SeenObject } from './index.ts'
import { gateTexts, reasonsWithRemedy } from './remedies.ts'

const root = resolve(import.meta.dirname, '../..')
const nowMs = Date.parse('2026-01-01T12:00:00Z')
const ago = (seconds: number): string => new Date(nowMs - seconds * 1000).toISOString()

const condition = (type: string, status: string, reason: string, message = ''): object => ({
  ...{ type, status, reason, message },
  lastTransitionTime: ago(60),
})
const member = (name: string, more: object = {}): SeenObject => ({
  ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name } },
  status: { conditions: [condition('Ready', 'True', 'Answers')] },
  ...more,
})
const deployment = (annotations: Record<string, string>, status: object = {}, spec: object = {}): SeenObject => ({
  ...{ apiVersion: 'apps/v1', kind: 'Deployment' },
  metadata: { name: 'web', namespace: 'shop', uid: 'u', generation: 1, creationTimestamp: ago(600), annotations },
  spec: { replicas: 2, ...spec },
  status: { observedGeneration: 1, ...status },
})
const placed = (value: object): Record<string, string> => ({ [placedOnAnnotation]: JSON.stringify(value) })
const pod = (state: object, restartCount = 0): SeenObject => ({
  ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'web-1', namespace: 'shop', uid: 'p' } },
  status: { phase: 'Pending', containerStatuses: [{ name: 'web', restartCount, state }] },
})
const wait = { gate: 'RolloutComplete', since: ago(90), until: ago(-510), then: 'Held' }

const sleeping: SeenObject = {
  ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'acme' } },
  status: {
    conditions: [condition('Ready', 'True', 'Served'), condition('Asleep', 'True', 'Idle', 'the first write wakes it')],
  },
}

interface Case {
  readonly title: string
  readonly object: SeenObject
  readonly around?: Partial<Parameters<typeof explainObject>[1]>
  readonly expected: readonly RegExp[]
}

const cases: readonly Case[] = [
  {
    title: 'a workload without any member',
    object: deployment({}),
    around: { members: [] },
    expected: [/WRONG .*it is stored and does not run: no member is registered[^]*-> admin: kcp member join/],
  },
  {
    title: 'a workload that no operator has placed',
    object: deployment({}),
    around: { members: [member('east')] },
    expected: [/no member has been chosen yet\n +waits for 10m for the operator to place it\n +-> .*kcp diagnose/],
  },
  {
    title: 'a workload that is held',
    object: deployment({}, { conditions: [condition('Placed', 'False', 'InsufficientCapacity', 'needs 4 cpu')] }),
    expected: [/^WRONG Deployment shop\/web in acme: Placed is False: needs 4 cpu for 60s\n +-> lower requests/],
  },
  {
    title: 'a move, with its gate, its age and its deadline',
    object: deployment(placed({ east: { state: 'Serving', since: ago(900) }, west: { state: 'Applied', wait } })),
    expected: [
      /copy in west is Applied\n +waits for 90s for its pods to be ready \(RolloutComplete\); at most 8m more: then the old copy stays/,
      /ok +.*copy in east is Serving for 15m/,
    ],
  },
  {
    title: 'a move whose time is over',
    object: deployment(placed({ west: { state: 'Applied', wait: { ...wait, until: ago(30) } } })),
    expected: [/^WRONG .*copy in west is Applied[^]*its time was over 30s ago/],
  },
  {
    title: 'a copy in a member that is lost',
    object: deployment(placed({ east: { state: 'Lost', since: ago(50) } })),
    around: {
      members: [member('east', { status: { conditions: [condition('Ready', 'Unknown', 'Lost', 'no answer')] } })],
    },
    expected: [
      /WRONG .*copy in east is Lost for 50s/,
      /MemberCluster east: Ready is Unknown: no answer for 60s[^]*kcp fence/,
    ],
  },
  {
    title: 'the refusal of a member',
    object: deployment({
      ...placed({ east: { state: 'Syncing' } }),
      'status.kcp.dev/east': '{"error":"quota exceeded"}',
    }),
    expected: [/WRONG .*member east refuses it: quota exceeded\n +-> mend what refuses the object in the member/],
  },
  {
    title: 'pods that crash, instead of their conditions',
    object: deployment(placed({ east: { state: 'Serving' } })),
    around: { pods: [pod({ waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m' } }, 7)] },
    expected: [
      /WRONG Pod shop\/web-1 in acme: container web waits: CrashLoopBackOff \(back-off 5m\), after 7 restarts\n +-> .*kubectl logs web-1 -n shop --previous/,
    ],
  },
  {
    title: 'a paused rollout, and a scale of zero',
    object: deployment(placed({ east: { state: 'Serving' } }), {}, { paused: true, replicas: 0 }),
    expected: [/WRONG .*its rollout is paused[^]*kubectl rollout resume deployment web/, /note .*spec.replicas is 0/],
  },
  {
    title: 'an object whose finalizers hold it',
    object: {
      ...deployment({}),
      metadata: {
        name: 'web',
        namespace: 'shop',
        deletionTimestamp: ago(300),
        finalizers: ['syncer.kcp.dev/east', 'x/y'],
      },
    },
    expected: [
      /it is being deleted\n +waits for 5m for member east to have nothing of it any more, and the controllers of its finalizers: x\/y/,
    ],
  },
  {
    title: 'a logical cluster that is asleep: that there are no pods is well',
    object: deployment(placed({ east: { state: 'Serving', asleep: true } })),
    around: { logicalCluster: sleeping },
    expected: [
      /^ok +.*nothing is wrong, and nothing waits/,
      /note +LogicalCluster acme: it is asleep, so its workloads have no pods: the first write wakes it/,
    ],
  },
  {
    title: 'a logical cluster that no operator has seen',
    object: deployment(placed({ east: { state: 'Serving' } })),
    around: {
      logicalCluster: {
        apiVersion: 'kcp.dev/v1alpha1',
        kind: 'LogicalCluster',
        metadata: { name: 'acme' },
      },
    },
    expected: [/LogicalCluster acme: logical cluster acme has no condition Ready\n +waits for an operator/],
  },
  {
    title: 'nothing, where all is well, and the last move',
    object: deployment(
      {
        ...placed({ east: { state: 'Serving' } }),
        [historyAnnotation]: JSON.stringify([
          { time: ago(180), from: ['west'], to: ['east'], cause: 'Drain', message: '' },
        ]),
      },
      { readyReplicas: 2 },
    ),
    around: { members: [member('east')] },
    expected: [
      /^ok +Deployment shop\/web in acme: nothing is wrong/,
      /2 of 2 replicas/,
      /last move from west to east, cause Drain, 3m ago/,
    ],
  },
]

const textOf = (findings: readonly Finding[]): string => findingsText(findings, nowMs)

describe('the explanation of an object', () => {
  for (const { title, object, around, expected } of cases) {
    it(`tells ${title}`, () => {
      const text = textOf(explainObject(object, { cluster: 'acme', nowMs, ...around }))
      for (const pattern of expected) expect(text).to.match(pattern)
    })
  }

  it('says that issuers of a logical cluster do not count, and not for each of its objects', () => {
    const says = 'no issuer of spec.authentication counts: x'
    const conditions = [
      condition('Ready', 'True', 'Served'),
      condition('AuthenticationValid', 'False', 'IssuersInvalid', says),
    ]
    const logicalCluster = {
      ...{ apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name: 'acme' } },
      status: { conditions },
    } as SeenObject
    const content = { cluster: 'acme', nowMs, logicalCluster, namespaces: [], members: [member('east')], events: [] }
    expect(textOf(explainCluster({ ...content, objects: [], pods: [] }))).to.match(
      /LogicalCluster acme: AuthenticationValid is False: no issuer[^]*correct the fields of spec.authentication/,
    )
    const well = deployment(placed({ east: { state: 'Serving' } }), { readyReplicas: 2 })
    expect(explainObject(well, { cluster: 'acme', nowMs, logicalCluster }).map(({ state }) => state)).to.include('well')
  })

  it('of a whole logical cluster has each problem once, and counts what is well', () => {
    const well = deployment(placed({ east: { state: 'Serving' } }), { readyReplicas: 2 })
    const content = { cluster: 'acme', nowMs, namespaces: [], members: [member('east')], events: [] }
    expect(textOf(explainCluster({ ...content, objects: [well], pods: [] }))).to.match(/^ok .*1 objects and 0 pods/)
    const bad = pod({ waiting: { reason: 'ImagePullBackOff' } })
    expect(explainCluster({ ...content, objects: [well], pods: [bad] }).map(({ state }) => state)).to.deep.equal([
      'wrong',
    ])
    const many = Array.from({ length: 60 }, (_, n) =>
      pod({ waiting: { reason: 'ImagePullBackOff', message: `image ${n}` } }),
    )
    const same = explainCluster({ ...content, objects: [], pods: [bad, bad, bad] })
    expect(same.map(({ what }) => what)).to.deep.equal([
      'container web waits: ImagePullBackOff; the same of 2 other Pods',
    ])
    const findings = explainCluster({ ...content, objects: [], pods: many })
    expect([findings.length, findings.at(-1)?.what]).to.deep.equal([51, '10 more objects wait or are wrong'])
  })

  it('of a member names what holds its drain up', () => {
    const remaining = [
      { logicalCluster: 'acme', kind: 'Job', namespace: 'shop', name: 'sum', state: 'Held', message: 'it stays' },
    ]
    const draining = member('east', { spec: { state: 'Draining' }, status: { moving: 1, held: 1, remaining } })
    expect(textOf(explainMember(draining))).to.match(/^WRONG Job shop\/sum in acme: it cannot leave east: it stays/)
    expect(textOf(explainMember(member('west')))).to.match(/^ok .*it answers/)
  })

  it('tells which fields of an API members lack, and why a change of it is held', () => {
    const annotations = {
      'kcp.dev/held-change': 'the change is held, because 2 stored objects would lose spec.colour',
      'kcp.dev/dropped-fields': '[{"version":"v1","path":".spec.size","members":["west"]}]',
    }
    const definition = { ...deployment(annotations), kind: 'CustomResourceDefinition' }
    expect(textOf(explainObject(definition, { cluster: 'acme', nowMs }))).to.match(
      /^WRONG .*2 stored objects would lose spec.colour\n +-> remove the fields[^]*members lack fields.*\.spec\.size/,
    )
    const droppedFields = [{ version: 'v1', path: '.spec.colour', members: ['west'] }]
    const conditions = [condition('Compatible', 'False', 'DefinitionsDiffer', 'spec.scope is Cluster')]
    const api = { group: 'example.com', resource: 'widgets', droppedFields, conditions }
    expect(textOf(explainMember(member('east', { status: { exportedAPIs: [api] } })))).to.match(
      /^WRONG .*widgets\.example\.com: Compatible is False: spec\.scope is Cluster[^]*\.spec\.colour \(west\)/,
    )
  })

  it('lets no message look like another finding', () => {
    const message = 'full\nok    Deployment shop/web in acme: nothing is wrong'
    const object = deployment(placed({ east: { state: 'Held', message } }))
    expect(textOf(explainObject(object, { cluster: 'acme', nowMs }))).not.to.match(
      /^ok +Deployment shop\/web in acme: nothing/m,
    )
  })

  it('survives objects with fields of any type', () => {
    for (const value of [null, 1, 'x', [], {}, [null], [[]], { conditions: [null, 3] }]) {
      const object = { ...deployment({ [placedOnAnnotation]: JSON.stringify(value) }), status: value, spec: value }
      expect(explainObject(object, { cluster: 'acme', nowMs, pods: [object] })).not.to.equal([])
    }
  })
})

describe('the texts of explanations', () => {
  it('name gates in the words of the scheduler', () => {
    for (const [gate, { waitsFor }] of Object.entries(gateTexts)) expect(waitText(gate, {})).to.equal(waitsFor)
  })

  it('use the annotations of the scheduler', () => {
    expect([
      copies.placedOnAnnotation,
      copies.heldAnnotation,
      copies.historyAnnotation,
      copies.memberAnnotation,
    ]).to.deep.equal([placedOnAnnotation, heldAnnotation, historyAnnotation, memberAnnotation])
  })

  it('have remedies only for reasons of docs/reference/reasons.md and of Kubernetes', () => {
    const document = readFileSync(join(root, 'docs/reference/reasons.md'), 'utf8')
    const unknown = reasonsWithRemedy().filter(
      (reason) => !new RegExp(`^(### |\\| \`)${reason}\\b`, 'm').test(document),
    )
    expect(unknown.slice(0, 1)).to.deep.equal(['Unschedulable'])
  })
})

describe('the folder of explanations', () => {
  it('can be bundled for a browser, and imports only pure functions of apimachinery', async () => {
    const { metafile } = await build({
      ...{ entryPoints: [join(import.meta.dirname, 'index.ts')], bundle: true, write: false, metafile: true },
      ...{ platform: 'browser', format: 'esm', logLevel: 'silent' },
    })
    const inputs = Object.keys(metafile.inputs)
    expect(inputs.filter((file) => !/src\/(explain|apimachinery)\//.test(file))).to.deep.equal([])
    expect(inputs.length).to.be.greaterThan(5)
  })
})
