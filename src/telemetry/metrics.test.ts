import { expect } from 'chai'
import { createMetrics } from './metrics.ts'

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
})
