import { expect } from 'chai'
import { clusterIdOf, type ClusterId } from '#apimachinery/meta/index.ts'
import { isStoreError } from '#store/store.ts'
import { WaitingWrites } from './record-writer.ts'

describe('writes that wait for the host', () => {
  const acme = clusterIdOf('acme')
  let now: number
  let writes: WaitingWrites
  let answers: (() => void)[]
  beforeEach(() => {
    now = 0
    writes = new WaitingWrites(() => now)
    answers = []
  })
  afterEach(() => answers.forEach((answer) => answer()))

  const begin = (cluster: ClusterId): Promise<unknown> =>
    writes.admit(cluster, () => new Promise<void>((resolve) => answers.push(resolve)))
  const isRefused = async (cluster: ClusterId): Promise<boolean> =>
    await writes
      .admit(cluster, () => Promise.resolve())
      .then(
        () => false,
        (error: unknown) => isStoreError(error, 'Busy'),
      )

  it('are as many as come while the host is fast', async () => {
    for (let n = 0; n < 1000; n++) void begin(acme)
    now = 999
    expect(await isRefused(acme)).to.equal(false)
  })

  it('are 50 of one logical cluster while it is slow, and others go on', async () => {
    const all = Array.from({ length: 50 }, () => begin(acme))
    now = 1000
    expect(await isRefused(acme)).to.equal(true)
    expect(await isRefused(clusterIdOf('bob'))).to.equal(false)
    answers.shift()?.()
    await all[0]
    expect(await isRefused(acme)).to.equal(false)
  })

  it('are 500 of all', async () => {
    const all = Array.from({ length: 500 }, (_, n) => begin(clusterIdOf(`tenant-${n}`)))
    now = 1000
    expect(await isRefused(acme)).to.equal(true)
    answers.splice(0).forEach((answer) => answer())
    await Promise.all(all)
    expect(await isRefused(acme)).to.equal(false)
  })
})
