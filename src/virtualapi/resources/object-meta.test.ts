import { expect } from 'chai'
import type { ObjectMeta, OwnerReference } from '../../apimachinery/meta/index.ts'
import { dropRepeatedOwners } from './object-meta.ts'

const owner = (uid: string, more: Partial<OwnerReference> = {}): OwnerReference => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid },
  ...more,
})

describe('dropRepeatedOwners', () => {
  it('drops owners with equal members in any order, and tells their uids', () => {
    const reordered = { uid: 'one', name: 'a', kind: 'ConfigMap', apiVersion: 'v1' }
    const ownerReferences = [owner('one'), owner('two'), reordered, owner('one', { controller: true })]
    const meta: ObjectMeta = { ownerReferences }
    expect(dropRepeatedOwners(meta)).to.deep.equal(['one'])
    expect(meta.ownerReferences).to.deep.equal([owner('one'), owner('two'), owner('one', { controller: true })])
  })

  it('takes less than a second of processor time for 16,000 owners', () => {
    const ownerReferences = Array.from({ length: 16_000 }, (_, i) => owner(`uid-${i}`))
    const before = process.cpuUsage()
    expect(dropRepeatedOwners({ ownerReferences })).to.deep.equal([])
    const { user, system } = process.cpuUsage(before)
    expect((user + system) / 1e6).to.be.lessThan(1)
  })
})
