import { expect } from 'chai'
import { createLogger, createMetrics } from '#telemetry/index.ts'
import { Exchange } from '#virtualapi/request/exchange.ts'
import { parseRequest } from '#virtualapi/request/parse-request.ts'
import { PassMonitor } from './pass-monitor.ts'

function exchangeOf(path: string): Exchange {
  const { signal } = new AbortController()
  const rawHeaders = ['User-Agent', 'kubectl/v1.34']
  const request = { method: 'GET', url: path, rawHeaders, peerCertificate: undefined, signal }
  const exchange = new Exchange({ ...request, body: () => Promise.resolve(new Uint8Array()) })
  exchange.info = parseRequest('GET', path, { hasBearerToken: false })
  return exchange
}

/** Blocks the event loop, as a request does. */
function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end;);
}

const nextPass = (): Promise<void> => new Promise((resolve) => setImmediate(() => setImmediate(resolve)))

describe('PassMonitor', () => {
  it('logs and counts the request that blocked the event loop, at most once a second', async () => {
    const lines: string[] = []
    const log = createLogger({ destination: { write: (line) => lines.push(line) }, format: 'json' })
    const metrics = createMetrics()
    const monitor = new PassMonitor({ log, metrics })
    const [slow, quick] = ['secrets', 'pods'].map((name) => exchangeOf(`/clusters/acme/api/v1/${name}`))
    if (slow === undefined || quick === undefined) throw new Error('no exchange')
    monitor.mark(quick)
    monitor.mark(slow)
    work(60)
    monitor.mark(quick)
    await nextPass()
    monitor.mark(slow)
    work(60)
    await nextPass()
    expect(lines).to.have.length(1)
    const { message, resource, method, userAgent } = JSON.parse(lines[0] ?? '') as Record<string, unknown>
    expect({ message, resource, method, userAgent }).to.deep.equal({
      message: 'a request blocked the event loop',
      resource: 'secrets.',
      method: 'GET',
      userAgent: 'kubectl/v1.34',
    })
    const { body } = await metrics.scrape()
    expect(body).to.include('kcp_event_loop_blocked_total{verb="list"} 2')
    expect(Number(/^kcp_event_loop_blocked_longest_seconds (.*)$/m.exec(body)?.[1])).to.be.at.least(0.05)
  })

  it('does not count the time between two passes of the event loop', async () => {
    const metrics = createMetrics()
    const monitor = new PassMonitor({ log: createLogger({ level: 'silent' }), metrics })
    monitor.mark(exchangeOf('/clusters/acme/api/v1/pods'))
    await nextPass()
    work(60)
    monitor.mark(exchangeOf('/clusters/acme/api/v1/pods'))
    await nextPass()
    expect((await metrics.scrape()).body).not.to.match(/kcp_event_loop_blocked_total\{/)
  })
})
