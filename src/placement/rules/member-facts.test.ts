import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { MemberCluster, UnsupportedFields } from '#crds/index.ts'
import { unknownField, usedField } from './member-facts.ts'

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

describe('the field of an object that one of the patterns names', () => {
  const object = {
    spec: { containers: [{ name: 'a' }, { name: 'b', rules: [1] }], limits: { cpu: { claim: 'x' } }, off: null },
  }

  for (const { title, patterns, expected } of [
    {
      title: 'is found in an item of a list',
      patterns: ['spec.containers[*].rules'],
      expected: 'spec.containers[1].rules',
    },
    { title: 'is found in a value of a map', patterns: ['spec.limits{*}.claim'], expected: 'spec.limits[cpu].claim' },
    {
      title: 'is the first one',
      patterns: ['spec.none', 'spec.containers', 'spec.limits'],
      expected: 'spec.containers',
    },
    { title: 'is not one that is absent', patterns: ['spec.containers[*].env[*].file', 'kind'], expected: undefined },
    { title: 'is not one that is null', patterns: ['spec.off'], expected: undefined },
  ]) {
    it(title, () => expect(usedField(object, patterns)).to.equal(expected))
  }
})
