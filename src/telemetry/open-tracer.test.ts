import { expect } from 'chai'
import { createServer } from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { json } from 'node:stream/consumers'
import { setImmediate } from 'node:timers/promises'
import { createMetrics } from './metrics.ts'
import { silentLogger } from './log.ts'
import { openTracer } from './open-tracer.ts'
import { currentContext, errorType, inNewTrace, inSpan, processTracer, type Tracer } from './tracer.ts'

interface Sent {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly status?: { readonly code?: number }
  readonly links?: readonly { readonly spanId: string }[]
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[]
}
interface Batch {
  readonly resourceSpans: readonly { readonly scopeSpans: readonly { readonly spans: readonly Sent[] }[] }[]
}

/** Runs with a tracer; resolves with what its collector has received when it was closed. */
async function traced(
  samplingRatePerMillion: number,
  run: (tracer: Tracer) => Promise<void>,
  { path = '' } = {},
): Promise<{ readonly sent: readonly Sent[]; readonly paths: readonly string[]; readonly metrics: string }> {
  const sent: Sent[] = []
  const paths: string[] = []
  const server = createServer((request, response) => {
    paths.push(request.url ?? '')
    void json(request).then((batch) => {
      for (const { scopeSpans } of (batch as Batch).resourceSpans)
        for (const { spans } of scopeSpans) sent.push(...spans)
      response.end('{}')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const endpoint = `http://127.0.0.1:${(server.address() as AddressInfo).port}${path}`
  const metrics = createMetrics()
  try {
    const names = { serviceName: 'kcp', instanceId: 'one' }
    await using _open = await openTracer({ endpoint, samplingRatePerMillion, ...names, metrics, log: silentLogger })
    await run(processTracer()!)
  } finally {
    server.closeAllConnections()
    server.close()
  }
  return { sent, paths, metrics: (await metrics.scrape()).body }
}

const remote = { traceId: '4bf92f3577b34da6a3ce929d0e0e4736', spanId: '00f067aa0ba902b7', isSampled: true }

describe('the tracer', () => {
  it('is absent unless one was opened, and absent again when that is closed', async () => {
    expect(processTracer()).to.equal(undefined)
    await traced(0, async (tracer) => {
      expect(processTracer()).to.equal(tracer)
    })
    expect(processTracer()).to.equal(undefined)
  })

  it('sends spans with their parents, what is queued at the end too', async () => {
    const { sent, paths, metrics } = await traced(1_000_000, async (tracer) => {
      await inNewTrace(
        tracer,
        'visit',
        async () => {
          await setImmediate()
          await inSpan(tracer, 'step', async () => setImmediate())
        },
        { key: 'a' },
      )
    })
    const [step, visit] = sent
    expect([step?.name, visit?.name]).to.deep.equal(['step', 'visit'])
    expect([step?.traceId, step?.parentSpanId]).to.deep.equal([visit?.traceId, visit?.spanId])
    expect(paths).to.deep.equal(['/v1/traces'])
    expect(metrics).to.match(/^kcp_trace_spans_total 2$/m)
    expect(metrics).to.match(/^kcp_trace_spans_exported_total 2$/m)
  })

  it('keeps a path of the endpoint', async () => {
    const { paths } = await traced(
      1_000_000,
      async (tracer) => {
        await inNewTrace(tracer, 'visit', async () => undefined, {})
      },
      { path: '/otlp/v1/traces' },
    )
    expect(paths).to.deep.equal(['/otlp/v1/traces'])
  })

  it('samples new traces by its rate, and others as their parent is', async () => {
    const { sent } = await traced(0, async (tracer) => {
      for (const name of ['new', 'linked']) tracer.start(name, name === 'linked' ? { link: remote } : {}).end()
      tracer.start('unsampled', { parent: { ...remote, isSampled: false } }).end()
      tracer.start('sampled', { parent: remote }).end()
    })
    expect(sent.map(({ name, parentSpanId }) => [name, parentSpanId])).to.deep.equal([['sampled', remote.spanId]])
  })

  it('records a half of the traces at half a million', async () => {
    const { sent } = await traced(500_000, async (tracer) => {
      for (let i = 0; i < 1000; i++) tracer.start('one').end()
    })
    expect(sent.length).to.be.within(400, 600)
  })

  it('has no span in the current context after its end', async () => {
    const { sent } = await traced(1_000_000, async (tracer) => {
      const later = Promise.withResolvers<undefined>()
      let outliving: Promise<unknown> | undefined
      await inNewTrace(
        tracer,
        'visit',
        async () => {
          outliving = later.promise.then(() => inSpan(tracer, 'afterwards', async () => tracer.current()))
        },
        {},
      )
      later.resolve(undefined)
      expect(await outliving).to.equal(undefined)
    })
    expect(sent.map(({ name }) => name)).to.deep.equal(['visit'])
  })

  it('leaves no span of a step that did not wait, or outside of a trace, or in one that is not sampled', async () => {
    const run = async (tracer: Tracer): Promise<void> => {
      const atOnce = (name: string): unknown => inSpan<undefined>(tracer, name, () => undefined)
      expect(atOnce('alone')).to.equal(undefined)
      await inNewTrace(tracer, 'visit', async () => atOnce('at once'), {})
    }
    expect((await traced(1_000_000, run)).sent.map(({ name }) => name)).to.deep.equal(['visit'])
    expect((await traced(0, run)).sent).to.deep.equal([])
  })

  it('marks failures by their kind, without their messages', async () => {
    const { sent } = await traced(1_000_000, async (tracer) => {
      const failing = async (): Promise<never> => Promise.reject(new TypeError('of a tenant'))
      await inNewTrace(tracer, 'visit', failing, {}).catch(() => undefined)
      const parent = tracer.start('parent')
      const throwing = (): undefined => {
        throw Object.assign(new Error('of a tenant'), { reason: 'Forbidden' })
      }
      expect(() => inSpan(tracer, 'thrown', throwing, { parent })).to.throw('of a tenant')
      parent.end()
    })
    const failures = sent.filter(({ status }) => status?.code === 2)
    expect(
      failures.map(({ name, attributes }) => [
        name,
        attributes.find(({ key }) => key === 'error.type')?.value.stringValue,
      ]),
    ).to.deep.equal([
      ['visit', 'TypeError'],
      ['thrown', 'Forbidden'],
    ])
    expect(JSON.stringify(sent)).not.to.contain('of a tenant')
  })

  it('bounds names, attributes and links', async () => {
    const { sent } = await traced(1_000_000, async (tracer) => {
      const many = Object.fromEntries(Array.from({ length: 100 }, (_, i) => [`a${i}`, 'x'.repeat(1000)]))
      const span = tracer.start('n'.repeat(1000), { attributes: many, link: remote })
      span.set(many)
      span.end()
      span.set({ late: true })
      span.end()
    })
    const [span] = sent
    expect(span?.name.length).to.equal(256)
    expect(span?.attributes.length).to.equal(32)
    expect(span?.attributes.every(({ value }) => value.stringValue?.length === 256)).to.equal(true)
    expect(span?.links?.map(({ spanId }) => spanId)).to.deep.equal([remote.spanId])
  })

  it('drops spans beyond its queue, and counts them', async () => {
    const { sent, metrics } = await traced(1_000_000, async (tracer) => {
      for (let i = 0; i < 5000; i++) tracer.start('one').end()
    })
    expect(sent.length).to.be.within(2048, 2048 + 512)
    expect(metrics).to.match(/^kcp_trace_spans_total 5000$/m)
    expect(metrics).to.match(new RegExp(`^kcp_trace_spans_exported_total ${sent.length}$`, 'm'))
  })

  it('takes its context along where a later callback asks for it', async () => {
    const { sent } = await traced(1_000_000, async (tracer) => {
      const parent = tracer.start('parent')
      const inTrace = tracer.within(parent, () => currentContext())
      await inTrace(() => inSpan(tracer, 'later', async () => undefined))
      parent.end()
    })
    expect(sent.find(({ name }) => name === 'later')?.parentSpanId).to.equal(
      sent.find(({ name }) => name === 'parent')?.spanId,
    )
  })

  it('costs one shared function where nothing is traced', () => {
    expect(currentContext()).to.equal(currentContext())
    expect(currentContext()(() => 1)).to.equal(1)
  })

  it('tells the kind of an error', () => {
    expect(errorType('text')).to.equal('error')
    expect(errorType(new RangeError('x'))).to.equal('RangeError')
    expect(errorType(Object.assign(new Error('x'), { code: 'ECONNREFUSED' }))).to.equal('ECONNREFUSED')
  })
})
