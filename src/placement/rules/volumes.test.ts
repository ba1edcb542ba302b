import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, placedOnAnnotation, volumeAnnotation, type PlacedOn } from '#crds/index.ts'
import {
  awaitedIn,
  claimsWithData,
  endsWithPod,
  membersOfClaims,
  needsClaim,
  ordinalOfClaim,
  takerOf,
  unknownClaim,
} from './volumes.ts'

const claim = (name: string, annotations: Record<string, string> = {}): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name, annotations },
})
const claims = [
  claim('files', { [volumeAnnotation]: 'east' }),
  claim('unused', { [volumeAnnotation]: 'north' }),
  claim('fresh'),
  claim('data-db-0', { [memberAnnotation]: 'west' }),
  claim('data-db-0-old', { [memberAnnotation]: 'north' }),
]
const workload = (kind: string, name: string, volumes: string[], templates: string[] = []): KubeObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name },
  spec: {
    template: { spec: { volumes: volumes.map((claimName) => ({ persistentVolumeClaim: { claimName } })) } },
    volumeClaimTemplates: templates.map((template) => ({ metadata: { name: template } })),
  },
})

describe('the members with volumes of a workload', () => {
  for (const { title, given, expected } of [
    { title: 'are none without volumes', given: workload('Deployment', 'web', []), expected: [] },
    { title: 'are none while no member has one', given: workload('Deployment', 'web', ['fresh']), expected: [] },
    {
      title: 'are those of the claims in its template',
      given: workload('Deployment', 'web', ['files']),
      expected: ['east'],
    },
    {
      title: 'are those of the claims of its pods',
      given: workload('StatefulSet', 'db', [], ['data']),
      expected: ['west'],
    },
    { title: 'are not those of another StatefulSet', given: workload('StatefulSet', 'd', [], ['data']), expected: [] },
  ])
    it(title, () => expect(membersOfClaims(claimsWithData(given, claims))).to.deep.equal(expected))
})

describe('the need of a claim', () => {
  const files = claim('files', { [volumeAnnotation]: 'east' })
  const job = { ...workload('Job', 'import', ['files']), apiVersion: 'batch/v1' }
  const pod: KubeObject = {
    ...{ apiVersion: 'v1', kind: 'Pod', metadata: { name: 'import' } },
    spec: { volumes: [{ name: 'data', persistentVolumeClaim: { claimName: 'files' } }] },
  }
  const complete = { conditions: [{ type: 'Complete', status: 'True' }] }
  for (const { title, given, expected } of [
    { title: 'is there for a Job that has not begun', given: job, expected: true },
    { title: 'is there for a Job that runs', given: { ...job, status: { active: 1 } }, expected: true },
    { title: 'ends with the Job', given: { ...job, status: complete }, expected: false },
    { title: 'is there for a pod', given: { ...pod, status: { phase: 'Running' } }, expected: true },
    { title: 'ends with the pod', given: { ...pod, status: { phase: 'Failed' } }, expected: false },
    {
      title: 'is there for a Deployment, whatever its conditions say',
      given: { ...workload('Deployment', 'web', ['files']), status: complete },
      expected: true,
    },
    { title: 'is not there for another claim', given: workload('Job', 'import', ['fresh']), expected: false },
  ])
    it(title, () => expect(needsClaim(given, files)).to.equal(expected))
})

describe('a claim', () => {
  const owned = (kind: string, controller: boolean): KubeObject => ({
    ...claim('web-1-scratch'),
    metadata: {
      name: 'web-1-scratch',
      ownerReferences: [{ apiVersion: 'v1', kind, name: 'web-1', uid: 'u', controller }],
    },
  })
  for (const { title, given, expected } of [
    { title: 'of an ephemeral volume ends with its pod', given: owned('Pod', true), expected: true },
    { title: 'that a pod only refers to stays', given: owned('Pod', false), expected: false },
    { title: 'of a StatefulSet that deletes its claims stays', given: owned('StatefulSet', true), expected: false },
    { title: 'of a tenant stays', given: claim('files'), expected: false },
  ])
    it(title, () => expect(endsWithPod(given)).to.equal(expected))
})

describe('the ordinal of a claim', () => {
  const cases: readonly { title: string; set: KubeObject; name: string; expected?: number }[] = [
    { title: 'is in its name', set: workload('StatefulSet', 'db', [], ['data']), name: 'data-db-12', expected: 12 },
    { title: 'has no leading zeros', set: workload('StatefulSet', 'db', [], ['data']), name: 'data-db-01' },
    { title: 'is that of its own StatefulSet', set: workload('StatefulSet', 'db', [], ['data']), name: 'data-db-2-0' },
    {
      title: 'is not there if all pods share the claim',
      set: workload('StatefulSet', 'db', ['data-db-0'], ['data']),
      name: 'data-db-0',
    },
    { title: 'is not there without ordinals', set: workload('Deployment', 'db', ['data-db-0']), name: 'data-db-0' },
  ]
  for (const { title, set, name, expected } of cases)
    it(title, () => expect(ordinalOfClaim(set, claim(name))).to.equal(expected))
})

describe('a claim that a member made and that is not in the logical cluster', () => {
  const set = workload('StatefulSet', 'db', [], ['data', 'wal'])
  const both = (...ordinals: number[]): KubeObject[] =>
    ordinals.flatMap((ordinal) => [claim(`data-db-${ordinal}`), claim(`wal-db-${ordinal}`)])
  const three = { start: 0, end: 3, pods: 3 }
  for (const { title, of = set, known, counts = three, expected } of [
    { title: 'is none if all are there', known: both(0, 1, 2) },
    { title: 'is the first one that lacks', known: both(0), expected: 'data-db-1' },
    { title: 'is one of another template', known: [...both(0, 1), claim('data-db-2')], expected: 'wal-db-2' },
    { title: 'is none of pods that are not made yet', known: both(0), counts: { ...three, pods: 1 } },
    { title: 'is none while there are no pods', known: [], counts: { ...three, pods: 0 } },
    {
      title: 'is none of ordinals that the member does not have',
      known: both(2),
      counts: { start: 2, end: 3, pods: 2 },
    },
    {
      title: 'is found among those of any ordinals',
      known: both(7),
      counts: { start: 5, end: 8, pods: 3 },
      expected: 'data-db-5',
    },
    {
      title: 'is found at once in a StatefulSet of any size',
      known: both(0),
      counts: { start: 0, end: 2_000_000_000, pods: 1_000_000_000 },
      expected: 'data-db-1',
    },
    { title: 'is none without templates', of: workload('StatefulSet', 'db', ['data']), known: [] },
    { title: 'is none of a Deployment', of: workload('Deployment', 'db', [], ['data']), known: [] },
  ] as readonly { title: string; of?: KubeObject; known: KubeObject[]; counts?: typeof three; expected?: string }[])
    it(title, () => expect(unknownClaim(of, known, counts)).to.equal(expected))
})

describe('the member in which a StatefulSet waits for a claim', () => {
  const waits = (gate: string) => ({ gate, since: '2026-01-01T00:00:00Z', then: 'Waits' as const })
  const placed = (placedOn: PlacedOn): KubeObject => {
    const set = workload('StatefulSet', 'db', [], ['data'])
    return { ...set, metadata: { ...set.metadata, annotations: { [placedOnAnnotation]: JSON.stringify(placedOn) } } }
  }
  const half: PlacedOn = {
    east: { state: 'Serving', start: 0, replicas: 1, wait: waits('OrdinalsMoved') },
    west: { state: 'Serving', start: 2, replicas: 1, awaits: 1 },
  }
  for (const { title, given, name = 'data-db-0', from = 'east', expected, taker } of [
    {
      title: 'is the one without pods yet',
      given: { east: { state: 'Serving' }, west: { state: 'Assumed' } },
      expected: 'west',
    },
    { title: 'is the one that takes pods from one that is left', given: half, expected: 'west' },
    { title: 'is the one that gets this pod next', given: half, name: 'data-db-1', expected: 'west', taker: 'west' },
    { title: 'is none for data that is there', given: half, name: 'data-db-1', from: 'west', taker: 'west' },
    { title: 'is none for a pod that has moved', given: half, name: 'data-db-2', from: 'west' },
    {
      title: 'is the one that is left no more',
      given: {
        east: { state: 'Serving', start: 0, replicas: 2 },
        west: { state: 'Serving', start: 2, replicas: 1, wait: waits('VolumesCopied') },
      },
      name: 'data-db-2',
      from: 'west',
      expected: 'east',
    },
    {
      title: 'is still the one that takes pods while the old one does not answer',
      given: {
        east: { state: 'Lost', start: 0, replicas: 2, wait: waits('MemberAnswers') },
        west: { state: 'Serving', start: 2, replicas: 1 },
      },
      expected: 'west',
    },
    ...(['Draining', 'Forwarding', 'Terminating'] as const).map((state) => ({
      title: `is the one that has some pods already while the old copy is ${state}`,
      given: {
        east: { state, start: 0, replicas: 2 },
        west: { state: 'Serving', start: 2, replicas: 1 },
      } as const,
      expected: 'west',
    })),
    {
      title: 'is the one that has some pods already when the old copy is gone',
      given: { west: { state: 'Serving', start: 2, replicas: 1 } },
      expected: 'west',
    },
    {
      title: 'is the one that has some pods already when its range is lost with the old copy',
      given: { west: { state: 'Available' } },
      expected: 'west',
    },
    {
      title: 'is still the one that takes pods while it does not answer',
      given: { ...half, west: { state: 'Lost', start: 2, replicas: 1 } },
      expected: 'west',
    },
    {
      title: 'is none if both copies end',
      given: { east: { state: 'Draining' }, west: { state: 'Draining', start: 2, replicas: 1 } },
    },
    {
      title: 'is none that leaves itself',
      given: { west: { state: 'Serving', wait: waits('VolumesCopied') } },
    },
    {
      title: 'is none while it is not decided where the pods go',
      given: {
        east: { state: 'Serving', start: 0, replicas: 2, wait: waits('SuccessorKnown') },
        west: { state: 'Serving', start: 2, replicas: 1, wait: waits('SuccessorKnown') },
      },
    },
    { title: 'is none at rest', given: { east: { state: 'Serving' } } },
  ] as readonly {
    title: string
    given: PlacedOn
    name?: string
    from?: string
    expected?: string
    taker?: string
  }[])
    it(title, () => {
      const set = placed(given)
      expect([awaitedIn(set, claim(name), from), takerOf(set, claim(name))]).to.deep.equal([expected, taker])
    })

  it('is none for a Job that has run where the data was', () => {
    const job = workload('Job', 'once', ['data'])
    const annotations = { [placedOnAnnotation]: JSON.stringify({ west: { state: 'Serving' } }) }
    expect(awaitedIn({ ...job, metadata: { ...job.metadata, annotations } }, claim('data'), 'east')).to.equal(undefined)
  })
})
