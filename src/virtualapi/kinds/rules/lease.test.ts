import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { leaseRules } from './lease.ts'

const manager = { manager: 'a', operation: 'Update' as const, apiVersion: 'v1', fieldsType: 'FieldsV1' as const }
const lease = (spec: object, metadata: object = {}, time = '1'): KubeObject => ({
  apiVersion: 'coordination.k8s.io/v1',
  kind: 'Lease',
  metadata: { name: 'web', ...metadata, managedFields: [{ ...manager, time }] },
  spec: { holderIdentity: 'a', renewTime: '2026-01-01T00:00:00.000000Z', ...spec },
})

describe('an update of a Lease', () => {
  for (const { title, next, old = lease({}), renewal } of [
    {
      title: 'of the time is a renewal',
      next: lease({ renewTime: '2' }, { resourceVersion: '9' }, '2'),
      renewal: true,
    },
    { title: 'of the holder is none', next: lease({ renewTime: '2', holderIdentity: 'b' }), renewal: false },
    { title: 'of the transitions is none', next: lease({ renewTime: '2', leaseTransitions: 1 }), renewal: false },
    { title: 'of an annotation is none', next: lease({ renewTime: '2' }, { annotations: { a: 'b' } }), renewal: false },
    { title: 'that gives it up is none', next: lease({ renewTime: '2', holderIdentity: '' }), renewal: false },
    {
      title: 'without a holder is none',
      next: lease({ holderIdentity: '' }),
      old: lease({ holderIdentity: '' }),
      renewal: false,
    },
    { title: 'without a spec is none', next: { ...lease({}), spec: undefined }, renewal: false },
  ])
    it(title, () => expect(leaseRules.isRenewal?.(next, old)).to.equal(renewal))
})
