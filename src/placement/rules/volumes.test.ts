import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, volumeAnnotation } from '#crds/index.ts'
import { claimsWithData, endsWithPod, membersOfClaims, needsClaim } from './volumes.ts'

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
