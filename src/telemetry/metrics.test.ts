import { expect } from 'chai'
import { addCounters, countersOf, createMetrics, scrapeOfAll } from './metrics.ts'

describe('metrics', () => {
  it('shows counters, gauges and histograms in a scrape', async () => {
    const metrics = createMetrics()
    metrics.counter({ name: 'kcp_requests_total', help: 'requests', labels: ['code'] }).inc({ code: '200' }, 2)
    let clusters = 1
    metrics.gauge({ name: 'kcp_clusters', help: 'clusters', read: () => clusters })
    metrics.histogram({ name: 'kcp_seconds', help: 'seconds', buckets: [0.1, 1] }).observe(0.5)
    clusters = 7
    const { body } = await metrics.scrape()
    expect(body).to.contain('kcp_requests_total{code="200"} 2')
    expect(body).to.contain('kcp_clusters 7')
    expect(body).to.contain('kcp_seconds_bucket{le="1"} 1')
  })

  it('of several processes are added up, except gauges that say otherwise', async () => {
    const snapshots = []
    for (const value of [3, 5]) {
      const metrics = createMetrics()
      metrics.counter({ name: 'kcp_requests_total', help: 'requests', labels: ['code'] }).inc({ code: '200' }, value)
      metrics.gauge({ name: 'kcp_clusters', help: 'clusters', read: () => value })
      metrics.gauge({ name: 'kcp_expiry', help: 'expiry', labels: ['of'], across: 'min' }).set(value, { of: 'ca' })
      metrics.gauge({ name: 'kcp_longest', help: 'longest', across: 'max', read: () => value })
      metrics.histogram({ name: 'kcp_seconds', help: 'seconds', buckets: [4, 10] }).observe(value)
      // As it arrives through a channel between processes.
      snapshots.push(JSON.parse(JSON.stringify(await metrics.snapshot())) as object[])
    }
    const { body } = await scrapeOfAll(snapshots)
    for (const line of [
      'kcp_requests_total{code="200"} 8',
      'kcp_clusters 8',
      'kcp_expiry{of="ca"} 3',
      'kcp_longest 5',
      'kcp_seconds_bucket{le="4"} 1',
      'kcp_seconds_bucket{le="+Inf"} 2',
      'kcp_seconds_sum 8',
      '# TYPE kcp_seconds histogram',
    ])
      expect(body.split('\n')).to.include(line)
  })

  it('of processes that have ended count in the sums, but for their gauges', async () => {
    let past: readonly object[] = []
    for (const value of [3, 5, 7]) {
      const metrics = createMetrics()
      const requests = metrics.counter({ name: 'kcp_requests_total', help: 'requests', labels: ['code', 'verb'] })
      requests.inc({ code: '200', verb: 'get' }, value)
      if (value === 5) requests.inc({ verb: 'list', code: '404' })
      metrics.gauge({ name: 'kcp_clusters', help: 'clusters', read: () => value })
      metrics.histogram({ name: 'kcp_seconds', help: 'seconds', buckets: [4, 10] }).observe(value)
      past = addCounters(past, JSON.parse(JSON.stringify(await metrics.snapshot())) as object[])
    }
    expect(countersOf(past)).to.deep.equal(past)
    const own = createMetrics()
    own.gauge({ name: 'kcp_clusters', help: 'clusters', read: () => 1 })
    const { body } = await scrapeOfAll([await own.snapshot(), past])
    for (const line of [
      'kcp_requests_total{code="200",verb="get"} 15',
      'kcp_requests_total{verb="list",code="404"} 1',
      'kcp_clusters 1',
      'kcp_seconds_bucket{le="4"} 1',
      'kcp_seconds_bucket{le="+Inf"} 3',
      'kcp_seconds_sum 15',
      'kcp_seconds_count 3',
    ])
      expect(body.split('\n')).to.include(line)
  })
})
