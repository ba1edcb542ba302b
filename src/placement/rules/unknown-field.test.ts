import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { MemberCluster, UnsupportedFields } from '#crds/index.ts'
import { unknownField } from './unknown-field.ts'

const member = (unsupportedFields?: UnsupportedFields[]): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name: 'old' },
  status: unsupportedFields === undefined ? {} : { unsupportedFields },
})
const podSpec = { containers: [{ name: 'main', image: 'any' }], resources: { limits: { cpu: '1' } } }
const object = (kind: string, spec: object): KubeObject => ({
  apiVersion: 'apps/v1',
  kind,
  metadata: { name: 'a' },
  spec,
})
const ofPods = [{ kind: 'Pod', paths: ['spec.hostnameOverride', 'spec.resources'] }]

describe('the field that keeps a workload away from a member', () => {
  for (const { title, workload, fields, expected } of [
    {
      title: 'is told as the path in a template',
      workload: object('Deployment', { template: { spec: podSpec } }),
      fields: ofPods,
      expected: 'spec.template.spec.resources',
    },
    {
      title: 'is told as the path in the template of a CronJob',
      workload: object('CronJob', { jobTemplate: { spec: { template: { spec: podSpec } } } }),
      fields: ofPods,
      expected: 'spec.jobTemplate.spec.template.spec.resources',
    },
    {
      title: 'is told as the path in a pod',
      workload: object('Pod', podSpec),
      fields: ofPods,
      expected: 'spec.resources',
    },
    {
      title: 'may be of the workload itself',
      workload: object('Deployment', { progress: 1, template: { spec: {} } }),
      fields: [{ kind: 'Deployment', paths: ['spec.progress'] }],
      expected: 'spec.progress',
    },
    {
      title: 'is the whole kind if the member does not serve it',
      workload: object('CronJob', {}),
      fields: [{ kind: 'CronJob', paths: ['.'] }],
      expected: '',
    },
    {
      title: 'is none if another kind has it',
      workload: object('Deployment', { progress: 1 }),
      fields: [{ kind: 'StatefulSet', paths: ['spec.progress'] }],
      expected: undefined,
    },
    {
      title: 'is none while nothing is known of the member',
      workload: object('Pod', podSpec),
      fields: undefined,
      expected: undefined,
    },
  ]) {
    it(title, () => expect(unknownField(workload, member(fields))).to.equal(expected))
  }
})
