import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, volumeAnnotation } from '#crds/index.ts'
import { claimsWithData, membersOfClaims } from './volumes.ts'

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
