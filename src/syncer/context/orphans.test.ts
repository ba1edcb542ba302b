import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ChangeListener } from '#client/index.ts'
import { OrphaningDeletions } from './orphans.ts'

describe('OrphaningDeletions', () => {
  let tell: ChangeListener<KubeObject> = () => undefined
  const deleted = (cluster: string, uid: string): void => {
    const metadata = { name: uid, uid, deletionTimestamp: '2026-01-01T00:00:00Z', finalizers: ['orphan'] }
    tell({ key: `${cluster}|shop/${uid}`, before: undefined, after: { apiVersion: 'v1', kind: 'A', metadata } })
  }
  const start = (): OrphaningDeletions =>
    new OrphaningDeletions([{ onChange: (listener) => ((tell = listener), () => undefined) }])

  it('forgets those of the logical cluster that has the most, the oldest first', () => {
    const orphaning = start()
    deleted('acme', 'first')
    for (let i = 0; i < 20_000; i++) deleted('noisy', `noisy-${i}`)
    expect(orphaning.has('first')).to.equal(true)
    expect(orphaning.has('noisy-0')).to.equal(false)
    expect(orphaning.has('noisy-19999')).to.equal(true)
  })
})
