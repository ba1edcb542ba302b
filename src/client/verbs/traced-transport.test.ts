import { expect } from 'chai'
import type { Span, SpanOptions, Tracer } from '#telemetry/index.ts'
import { tracedTransport } from './traced-transport.ts'
import type { Transport, TransportRequest } from './transport.ts'

const { signal } = new AbortController()

/** Starts spans with the ids 1, 2 and so on; the one of the innermost `within` is current. */
class Spans implements Tracer {
  readonly begun: { name: string; options: SpanOptions; attributes: Record<string, unknown>; failure?: string }[] = []
  readonly #open: Span[] = []

  start(name: string, options: SpanOptions = {}): Span {
    const record: (typeof this.begun)[number] = { name, options, attributes: { ...options.attributes } }
    this.begun.push(record)
    return {
      traceId: 'a'.repeat(32),
      spanId: String(this.begun.length).padStart(16, '0'),
      isSampled: !name.startsWith('unsampled'),
      hasEnded: false,
      set: (attributes) => void Object.assign(record.attributes, attributes),
      fail: (type) => void (record.failure = type),
      end: () => undefined,
    }
  }
  current(): Span | undefined {
    return this.#open.at(-1)
  }
  within<T>(span: Span, run: () => T): T {
    this.#open.push(span)
    try {
      return run()
    } finally {
      this.#open.pop()
    }
  }
}

function setUp(answer: () => Promise<never> | { status: number } = () => ({ status: 200 })) {
  const asked: TransportRequest[] = []
  const upgraded: (readonly string[])[] = []
  const inner = {
    request: async (request: TransportRequest) => {
      asked.push(request)
      return { headers: {}, body: (async function* () {})(), ...(await answer()) }
    },
    upgrade: async ({ rawHeaders }: { rawHeaders: readonly string[] }) => {
      upgraded.push(rawHeaders)
      return { upgraded: {} }
    },
  } as unknown as Transport
  const tracer = new Spans()
  return { asked, upgraded, tracer, transport: tracedTransport(inner, { tracer, server: () => 'member:6443' }) }
}

const get = { method: 'GET', path: '/api/v1/pods?labelSelector=secret', headers: { accept: 'x' }, signal }
const header = (spanId: number, flags: string): string =>
  `00-${'a'.repeat(32)}-${String(spanId).padStart(16, '0')}-${flags}`

describe('a traced transport', () => {
  it('changes nothing outside of a trace', async () => {
    const { transport, asked, tracer } = setUp()
    await transport.request(get)
    expect(asked).to.deep.equal([get])
    expect(tracer.begun).to.deep.equal([])
  })

  it('sends the span of the request to the server, in a header', async () => {
    const { transport, asked, tracer } = setUp()
    await tracer.within(tracer.start('visit'), () => transport.request(get))
    expect(asked[0]?.headers).to.deep.equal({ accept: 'x', traceparent: header(2, '01') })
    const { name, options, attributes } = tracer.begun[1]!
    expect([name, options.kind]).to.deep.equal(['HTTP GET', 'client'])
    expect(attributes).to.deep.equal({
      'http.request.method': 'GET',
      'url.path': '/api/v1/pods',
      'http.response.status_code': 200,
      'server.address': 'member:6443',
    })
  })

  it('replaces the header of the client, also in upgrades', async () => {
    const { transport, asked, upgraded, tracer } = setUp()
    const theirs = { ...get, headers: { traceparent: header(7, '01') } }
    await tracer.within(tracer.start('visit'), () => transport.request(theirs))
    expect(asked[0]?.headers).to.deep.equal({ traceparent: header(2, '01') })
    const rawHeaders = ['Traceparent', header(7, '01'), 'Upgrade', 'SPDY/3.1']
    await tracer.within(tracer.start('visit'), () => transport.upgrade({ ...get, rawHeaders }))
    expect(upgraded).to.deep.equal([['Upgrade', 'SPDY/3.1', 'traceparent', header(4, '01')]])
  })

  it('passes on that a trace is not sampled, and starts no span', async () => {
    const { transport, asked, tracer } = setUp()
    await tracer.within(tracer.start('unsampled visit'), () => transport.request(get))
    expect(asked[0]?.headers).to.deep.equal({ accept: 'x', traceparent: header(1, '00') })
    expect(tracer.begun).to.have.length(1)
  })

  it('records the type of a failure without its message', async () => {
    const { transport, tracer } = setUp(() => Promise.reject(Object.assign(new Error('x'), { code: 'ECONNREFUSED' })))
    const failed = await tracer
      .within(tracer.start('visit'), () => transport.request(get))
      .catch((error: unknown) => error)
    expect(failed).to.have.property('message', 'x')
    expect(tracer.begun[1]).to.have.property('failure', 'ECONNREFUSED')
  })
})
