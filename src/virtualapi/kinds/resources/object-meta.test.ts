import { expect } from 'chai'
import type { ObjectMeta, OwnerReference } from '#apimachinery/meta/index.ts'
import { dropRepeatedOwners, metaUpdateCauses } from './object-meta.ts'

const owner = (uid: string): OwnerReference => ({ apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid })
const owners = (count: number): ObjectMeta => ({
  name: 'x',
  ownerReferences: Array.from({ length: count }, (_, i) => owner(`u${i}`)),
})

describe('owner references', () => {
  it('lose repeated ones, whatever the order of their fields', () => {
    const { apiVersion, kind, name, uid } = owner('u')
    const meta = { ownerReferences: [owner('u'), owner('v'), { uid, name, kind, apiVersion }] }
    expect(dropRepeatedOwners(meta)).to.deep.equal(['u'])
    expect(meta.ownerReferences).to.deep.equal([owner('u'), owner('v')])
  })

  it('are looked at once each', () => {
    let reads = 0
    const counted = Array.from({ length: 5000 }, (_, i) => ({
      ...owner(''),
      get uid() {
        reads++
        return `u${i}`
      },
    }))
    expect(dropRepeatedOwners({ ownerReferences: counted })).to.deep.equal([])
    expect(reads).to.be.at.most(20_000)
  })

  it('are at most 1,000, and more only in an object that had more', () => {
    const check = (count: number, before: number): unknown => {
      const rules = { info: { namespaced: false }, strategy: { validateName: () => [] }, checks: [] }
      const object = { kind: 'ConfigMap', apiVersion: 'v1', metadata: owners(count) }
      const causes = metaUpdateCauses(object, owners(before), [], rules)
      return [...new Set(causes.map(({ field, message }) => `${field ?? ''}: ${message ?? ''}`))]
    }
    expect(check(1000, 0)).to.deep.equal([])
    expect(check(1001, 1000)).to.deep.equal(['metadata.ownerReferences: Too many: 1001: must have at most 1000 items'])
    expect(check(1001, 1001)).to.deep.equal([])
  })
})
