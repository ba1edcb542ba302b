import { expect } from 'chai'
import { createMetrics } from './metrics.ts'
import { mostNamed, rankedGauges, type Measured } from './ranked-gauges.ts'

describe('ranked gauges', () => {
  const descriptions = { objects: { name: 'kcp_o', help: 'objects' }, pods: { name: 'kcp_p', help: 'pods' } }
  const scrapeOf = async (all: readonly Measured<'objects' | 'pods'>[]) => {
    const metrics = createMetrics()
    let reads = 0
    rankedGauges(metrics, descriptions, () => {
      reads++
      return all
    })
    const { body } = await metrics.scrape()
    const series = body.split('\n').filter((line) => line !== '' && !line.startsWith('#'))
    return { series, reads }
  }

  it('sum over all, and name the 50 largest by each measure, however many there are', async () => {
    const count = 20_000
    const all = Array.from({ length: count }, (_, i) => ({
      name: `lc-${i}`,
      // Every number once, in an order that is neither rising nor falling; pods the other way round.
      amounts: { objects: ((i * 7919) % count) + 1, pods: count - ((i * 7919) % count) },
    }))
    const { series, reads } = await scrapeOf(all)
    expect(reads, 'one pass for all gauges of a scrape').to.equal(1)
    expect(series).to.have.length(2 * (mostNamed + 1))
    for (const [metric, measure] of [
      ['kcp_o', 'objects'],
      ['kcp_p', 'pods'],
    ] as const) {
      expect(series).to.include(`${metric} ${(count * (count + 1)) / 2}`)
      const largest = all.toSorted((a, b) => b.amounts[measure] - a.amounts[measure]).slice(0, mostNamed)
      expect(series.filter((line) => line.startsWith(`${metric}_top`))).to.deep.equal(
        largest.map(({ name, amounts }) => `${metric}_top{logical_cluster="${name}"} ${amounts[measure]}`),
      )
    }
  })

  it('name the same of equal ones in every scrape, and none that uses nothing', async () => {
    const equal = Array.from({ length: 200 }, (_, i) => ({
      name: `lc-${String((i * 37) % 200).padStart(3, '0')}`,
      amounts: { objects: 3, pods: 0 },
    }))
    const { series } = await scrapeOf(equal)
    const first = Array.from({ length: mostNamed }, (_, i) => `lc-${String(i).padStart(3, '0')}`)
    expect(series.filter((line) => line.startsWith('kcp_o_top'))).to.deep.equal(
      first.map((name) => `kcp_o_top{logical_cluster="${name}"} 3`),
    )
    expect(series.filter((line) => line.startsWith('kcp_p'))).to.deep.equal(['kcp_p 0'])
  })

  it('forget a logical cluster that is gone, and count at most once a second', async () => {
    const metrics = createMetrics()
    let all: Measured<'objects' | 'pods'>[] = [{ name: 'gone', amounts: { objects: 1, pods: 1 } }]
    rankedGauges(metrics, descriptions, () => all)
    expect((await metrics.scrape()).body).to.contain('kcp_o_top{logical_cluster="gone"} 1')
    all = []
    const begun = performance.now()
    let body = ''
    do {
      await new Promise((resolve) => setTimeout(resolve, 50))
      body = (await metrics.scrape()).body
    } while (body.includes('gone') && performance.now() - begun < 10_000)
    expect(body).to.contain('kcp_o 0').and.not.to.contain('gone')
  })
})
