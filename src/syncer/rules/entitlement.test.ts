import { globSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, placedOnAnnotation, syncerFinalizer } from '#crds/index.ts'
import { isHere, isShownFrom, makes } from './entitlement.ts'

const object = (kind: string, name: string, metadata: KubeObject['metadata'] = {}): KubeObject => ({
  ...{ apiVersion: 'v1', kind },
  metadata: { name, ...metadata },
})

describe('the names that controllers give', () => {
  const long = 'a'.repeat(70)
  for (const [owner, made, expected] of [
    ['Deployment web', 'ReplicaSet web-7d4b9c6f5', true],
    ['Deployment web', 'ReplicaSet web-db-7d4b9c6f5', false],
    ['Deployment web', 'ReplicaSet web', false],
    ['Deployment web', 'Pod web-bcdfg', false],
    ['ReplicaSet web-7d4b9c6f5', 'Pod web-7d4b9c6f5-bcdfg', true],
    ['ReplicaSet web-7d4b9c6f5', 'Pod db-0', false],
    ['ReplicaSet web', 'Pod web-db-bcdfg', false],
    ['ReplicaSet web', 'Pod web-abcde', false],
    [`ReplicaSet ${long}`, `Pod ${long.slice(0, 58)}bcdfg`, true],
    ['DaemonSet agent', 'Pod agent-24567', true],
    ['StatefulSet db', 'Pod db-0', true],
    ['StatefulSet db', 'Pod db-10', true],
    ['StatefulSet db', 'Pod db-01', false],
    ['StatefulSet db', 'Pod db-a-0', false],
    ['StatefulSet db', 'ControllerRevision db-5c8f9d7b6', true],
    ['StatefulSet db', 'ControllerRevision web-5c8f9d7b6', false],
    ['CronJob often', 'Job often-29000000', true],
    ['CronJob often', 'Job often-manual', false],
    ['Job once', 'Pod once-bcdfg', true],
    ['Job once', 'Pod once-3-bcdfg', true],
    ['Job once', 'Pod once-more-bcdfg', false],
    ['StatefulSet db', 'PersistentVolumeClaim data-db-0', true],
    ['StatefulSet db', 'PersistentVolumeClaim data-web-0', false],
    ['Pod web-bcdfg', 'PersistentVolumeClaim web-bcdfg-scratch', true],
    ['Service web', 'Pod web-bcdfg', false],
  ] as const)
    it(`${made} is ${expected ? '' : 'not '}made by ${owner}`, () => {
      const [ownerKind = '', ownerName = ''] = owner.split(' ')
      const [kind = '', name = ''] = made.split(' ')
      expect(makes({ kind: ownerKind, name: ownerName }, object(kind, name))).to.equal(expected)
    })
})

describe('the record of the scheduler', () => {
  const member = { name: 'east', id: 'eastmember', serviceNetwork: 'Flat' } as const
  const placed = (decision: object): Record<string, string> => ({ [placedOnAnnotation]: JSON.stringify(decision) })
  for (const { title, metadata, expected } of [
    {
      title: 'has a workload that is placed there',
      metadata: { annotations: placed({ east: { state: 'Serving' } }) },
      expected: true,
    },
    {
      title: 'has none that is placed elsewhere',
      metadata: { annotations: placed({ west: { state: 'Serving' } }) },
      expected: false,
    },
    {
      title: 'has none before its copy may exist',
      metadata: { annotations: placed({ east: { state: 'Assumed' } }) },
      expected: false,
    },
    {
      title: 'has one that leaves, as long as our finalizer is on it',
      metadata: { annotations: placed({ east: { state: 'Terminating' } }), finalizers: [syncerFinalizer('east')] },
      expected: true,
    },
    {
      title: 'has none that has left',
      metadata: { annotations: placed({ east: { state: 'Terminating' } }) },
      expected: false,
    },
    {
      title: 'has none that another member made',
      metadata: { annotations: { [memberAnnotation]: 'west' }, finalizers: [syncerFinalizer('east')] },
      expected: false,
    },
  ])
    it(title, () => expect(isHere({ member }, object('Deployment', 'web', metadata))).to.equal(expected))

  it('knows what came up from a member by its uid there', () => {
    const context = { member } as Parameters<typeof isShownFrom>[0]
    const shown = object('Pod', 'web', { uid: 'a', annotations: { [memberAnnotation]: 'east' } })
    expect(isShownFrom(context, shown, 'a')).to.equal(true)
    expect(isShownFrom(context, shown, 'b')).to.equal(false)
    expect(
      isShownFrom(context, object('Pod', 'web', { uid: 'a', annotations: { [memberAnnotation]: 'west' } }), 'a'),
    ).to.equal(false)
    expect(isShownFrom(context, object('Pod', 'web', { uid: 'a' }), 'a')).to.equal(false)
    expect(isShownFrom(context, object('Pod', 'web'), undefined)).to.equal(false)
  })
})

describe('what a syncer writes upstream', () => {
  /** Files that write without the question, and why. */
  const exempt: Readonly<Record<string, string>> = {
    'down/release-namespace.ts': 'removes the record that the namespace has another name in this member',
    'up/member-made-copy.ts': 'writes for its callers, which ask',
    'report/warning-event.ts': 'writes for its callers: report/tell-failure.ts asks',
    'down/object.ts': 'writes because of the decision, not of the member',
    'down/remove-copy.ts': 'the same',
    'context/deletion-guard.ts': 'reads',
    'rules/ending.ts': 'reads',
    'exports/exported-apis.ts': 'asks whether the logical cluster admits the member',
    'exports/custom-object.ts': 'asks the same by isOffered, and the record of the scheduler',
    'exports/related-objects.ts': 'asks mayShowRelated of rules/related.ts',
    'up/slice.ts': 'rules/slices.ts asks',
    'up/follow-owner.ts': 'up/origin.ts asks',
    'up/nodes.ts': 'shows nodes of pods that are upstream',
    'context/upstream.ts': 'has the client',
    'context/scope.ts': 'has the client',
  }
  const directory = new URL('..', import.meta.url)
  const files = globSync('**/*.ts', { cwd: directory, exclude: ['**/*.test.ts'] })
  const writers = files.filter((name) =>
    /\.client\(\s*[\w.]+\s*\)|\bupstreamClient\b/.test(readFileSync(new URL(name, directory), 'utf8')),
  )

  it('is looked for in the right files', () => expect(writers).to.include.members(['up/pods.ts', 'up/history.ts']))

  for (const name of writers.filter((one) => exempt[one] === undefined))
    it(`by ${name} follows from an entitlement of the member`, () =>
      expect(readFileSync(new URL(name, directory), 'utf8')).to.match(/from '(?:#syncer\/rules|\.)\/entitlement\.ts'/))
})
