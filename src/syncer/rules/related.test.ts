import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { relatedName } from './related.ts'

const object = (fields: object): KubeObject => ({
  apiVersion: 'example.com/v1',
  kind: 'Database',
  metadata: { name: 'orders' },
  ...fields,
})

describe('the name of an object that a member has made for a custom resource', () => {
  for (const { title, path = 'status.secret.name', upstream = {}, live = {}, expected } of [
    { title: 'is that of the object', live: { status: { secret: { name: 'orders' } } }, expected: 'orders' },
    { title: 'begins with it', live: { status: { secret: { name: 'orders-admin' } } }, expected: 'orders-admin' },
    { title: 'is not another one that the member says', live: { status: { secret: { name: 'payroll' } } } },
    { title: 'is not one that only begins alike', live: { status: { secret: { name: 'ordersystem' } } } },
    { title: 'is not a path', live: { status: { secret: { name: 'orders-/../x' } } } },
    { title: 'is no other type', live: { status: { secret: { name: { a: 1 } } } } },
    {
      title: 'is any that the tenant says, not the member',
      path: 'spec.secretName',
      upstream: { spec: { secretName: 'payroll' } },
      live: { spec: { secretName: 'other' } },
      expected: 'payroll',
    },
    {
      title: 'is none of the system',
      path: 'spec.secretName',
      upstream: { spec: { secretName: 'kube-root-ca.crt' } },
    },
  ] as { title: string; path?: string; upstream?: object; live?: object; expected?: string }[])
    it(title, () =>
      expect(relatedName({ resource: 'secrets', path }, { object: object(upstream), live: object(live) })).to.equal(
        expected,
      ),
    )
})
