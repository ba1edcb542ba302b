import { expect } from 'chai'
import { assignBuckets } from './assign-buckets.ts'
import { type Replica, routesOf } from './replica-lease.ts'

const replica = (name: string, claims: readonly number[]): Replica => ({
  ...{ name, address: `${name}:1`, process: '', leaseMs: 10_000 },
  claims: new Set(claims),
})

describe('routes to replicas', () => {
  it('lead to the replica that claims a bucket, and nowhere if none does', () => {
    const routes = routesOf([replica('a', [1]), replica('b', [2])], 'own')
    expect([0, 1, 2].map((bucket) => routes[bucket]?.name)).to.deep.equal([undefined, 'a', 'b'])
    expect(routesOf([], 'own')[0]).to.equal(undefined)
  })

  it('lead to the one that gives a bucket up, while another already claims it', () => {
    const owners = assignBuckets(['a', 'b', 'own'])
    const bucket = owners.indexOf('b')
    for (const others of [
      [replica('a', [bucket]), replica('b', [bucket])],
      [replica('b', [bucket]), replica('a', [bucket])],
    ])
      expect(routesOf(others, 'own')[bucket]?.name).to.equal('a')
  })
})
