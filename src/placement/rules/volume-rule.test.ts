import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { PlacementVolumes } from '#crds/index.ts'
import type { ApplicableRules } from './applicable-rules.ts'
import type { PlacementRule } from './target.ts'
import { volumeRuleOf } from './volume-rule.ts'

const claim = (storageClassName?: string): KubeObject => ({
  apiVersion: 'v1',
  kind: 'PersistentVolumeClaim',
  metadata: { name: 'data' },
  spec: { ...(storageClassName !== undefined && { storageClassName }) },
})
const rule = (name: string, volumes: PlacementVolumes, priority = 0): PlacementRule => ({
  ...{ name, priority, creationTimestamp: '', volumes },
})
const rules = (given: Partial<ApplicableRules>): ApplicableRules => ({
  ofTenant: [],
  ofCluster: [],
  global: [],
  ...given,
})
const noStandby = { standbys: [], everySeconds: 60 }
const copies = rule('all', { default: 'Copy' })

describe('the volume of a claim', () => {
  for (const { title, given, storageClass = 'fast', expected } of [
    {
      title: 'stays without a rule',
      given: rules({}),
      expected: { why: 'no Placement of the administrators lets them move' },
    },
    {
      title: 'stays by default where a Placement says nothing else',
      given: rules({ global: [rule('all', {})] }),
      expected: { why: 'Placement "all" does not let those of StorageClass "fast" move' },
    },
    {
      title: 'moves as the default of the Placement says',
      given: rules({ global: [copies] }),
      expected: { way: 'Copy', retainSeconds: 86_400, requireConsent: false, ...noStandby },
    },
    {
      title: 'moves as its class says, to the class that is named',
      given: rules({
        global: [rule('all', { classes: [{ storageClass: 'fast', moves: 'Copy', target: 'ssd' }], bandwidth: '50Mi' })],
      }),
      expected: {
        ...{
          way: 'Copy',
          storageClass: 'ssd',
          bandwidth: 52_428_800,
          retainSeconds: 86_400,
          requireConsent: false,
          ...noStandby,
        },
      },
    },
    {
      title: 'stays if its class never moves',
      given: rules({ global: [rule('all', { default: 'Copy', classes: [{ storageClass: 'fast', moves: 'Never' }] })] }),
      expected: { why: 'Placement "all" does not let those of StorageClass "fast" move' },
    },
    {
      title: 'obeys the Placement for its logical cluster before that for all',
      given: rules({ global: [copies], ofCluster: [rule('acme', { default: 'Pin' })] }),
      expected: { why: 'Placement "acme" does not let those of StorageClass "fast" move' },
    },
    {
      title: 'obeys the Placement of the highest priority',
      given: rules({ global: [copies, rule('urgent', { default: 'Pin' }, 5)] }),
      expected: { why: 'Placement "urgent" does not let those of StorageClass "fast" move' },
    },
    {
      title: 'stays if its tenant pins it',
      given: rules({ global: [copies], ofTenant: [rule('mine', { default: 'Pin' })] }),
      expected: { why: 'Placement "mine" pins them' },
    },
    {
      title: 'does not move because its tenant says so alone',
      given: rules({ ofTenant: [rule('mine', { default: 'Copy', bandwidth: '1Gi', retainSeconds: 0 })] }),
      expected: { why: 'no Placement of the administrators lets them move' },
    },
    {
      title: 'waits for consent if its tenant asks for that',
      given: rules({ global: [copies], ofTenant: [rule('mine', { requireConsent: true })] }),
      expected: { way: 'Copy', retainSeconds: 86_400, requireConsent: true, ...noStandby },
    },
  ] as { title: string; given: ApplicableRules; storageClass?: string; expected: unknown }[])
    it(title, () => expect(volumeRuleOf(claim(storageClass), given)).to.deep.equal(expected))
})
