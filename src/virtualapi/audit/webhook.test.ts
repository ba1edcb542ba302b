import { expect } from 'chai'
import { defaultAuditWebhook, type AuditWebhookSettings } from '#crds/index.ts'
import { AuditEvent } from '#virtualapi/request/request-audit.ts'
import { AuditWebhook } from './webhook.ts'

const event = (text: string, body?: string): AuditEvent =>
  new AuditEvent(
    { verb: text, annotations: {} } as never,
    body === undefined ? {} : { requestObject: JSON.stringify(body) },
    false,
  )

interface List {
  readonly kind: string
  readonly apiVersion: string
  readonly items: readonly { readonly verb: string; readonly requestObject?: string }[]
}

class Receiver {
  readonly lists: List[] = []
  lost = 0
  reasons: string[] = []
  /** What the webhook does with a batch: gives a status, or hangs until it is aborted. */
  answer: () => number | 'hang' = () => 200

  open(settings: Partial<AuditWebhookSettings>): AuditWebhook {
    return new AuditWebhook(
      { ...defaultAuditWebhook, initialBackoffMs: 1, ...settings },
      {
        post: async (body, signal) => {
          const answer = this.answer()
          if (answer === 'hang')
            return await new Promise((_, reject) =>
              signal.addEventListener('abort', () => reject(signal.reason as Error)),
            )
          if (answer < 300) this.lists.push(JSON.parse(Buffer.from(body).toString()) as List)
          return answer
        },
        onDropped: (events, error) => {
          this.lost += events
          this.reasons.push(error.message)
        },
      },
    )
  }

  get verbs(): string[] {
    return this.lists.flatMap(({ items }) => items.map(({ verb }) => verb))
  }
}

describe('the webhook of an audit log', () => {
  it('gets the events in batches, in order, and those that are left at the end', async () => {
    const receiver = new Receiver()
    const webhook = receiver.open({ maxBatchSize: 10, maxBatchWaitMs: 60_000, maxParallel: 1 })
    for (let i = 0; i < 25; i++) webhook.write(event(String(i)))
    await webhook[Symbol.asyncDispose]()
    expect(receiver.verbs).to.deep.equal(Array.from({ length: 25 }, (_, i) => String(i)))
    expect(receiver.lists.map(({ items }) => items.length)).to.deep.equal([10, 10, 5])
    expect(receiver.lists[0]).to.include({ kind: 'EventList', apiVersion: 'audit.k8s.io/v1' })
    expect([receiver.lost, webhook.bytes]).to.deep.equal([0, 0])
  })

  it('is tried five times, and then its events are counted as lost', async () => {
    const receiver = new Receiver()
    let calls = 0
    receiver.answer = () => (++calls, 500)
    const webhook = receiver.open({ maxBatchSize: 1 })
    webhook.write(event('a'))
    while (receiver.lost === 0) await new Promise((resolve) => setTimeout(resolve, 5))
    expect(calls).to.equal(5)
    expect(receiver.reasons).to.deep.equal(['the webhook has answered with status 500'])
    receiver.answer = () => 200
    webhook.write(event('b'))
    await webhook[Symbol.asyncDispose]()
    expect(receiver.verbs).to.deep.equal(['b'])
  })

  it('that hangs costs bounded memory and makes nobody wait', async () => {
    const receiver = new Receiver()
    receiver.answer = () => 'hang'
    const webhook = receiver.open({ maxBufferedBytes: 100_000, maxBatchSize: 10, bufferSize: 1_000_000 })
    for (let i = 0; i < 20_000; i++) {
      webhook.write(event(`${i} ${'x'.repeat(100)}`))
      expect(webhook.bytes).to.be.lessThan(100_001)
    }
    expect(receiver.lost).to.be.greaterThan(19_000)
    expect(receiver.reasons[0]).to.equal('audit buffer queue blocked')
    await webhook[Symbol.asyncDispose]()
    expect(receiver.lost).to.equal(20_000)
    expect(webhook.bytes).to.equal(0)
  })

  it('has a buffer of a number of events, too', async () => {
    const receiver = new Receiver()
    const webhook = receiver.open({ bufferSize: 5, maxBatchSize: 100, maxBatchWaitMs: 60_000 })
    for (let i = 0; i < 8; i++) webhook.write(event(String(i)))
    expect(receiver.lost).to.equal(3)
    await webhook[Symbol.asyncDispose]()
    expect(receiver.verbs).to.have.length(5)
  })

  it('gets large events without bodies, none that are larger still, and batches of bounded size', async () => {
    const receiver = new Receiver()
    const webhook = receiver.open({ maxEventBytes: 1000, maxBatchBytes: 1500, maxBatchWaitMs: 60_000, maxParallel: 1 })
    webhook.write(event('short', 'body'))
    webhook.write(event('long', 'x'.repeat(2000)))
    webhook.write(event('x'.repeat(2000)))
    for (let i = 0; i < 3; i++) webhook.write(event('y'.repeat(800)))
    await webhook[Symbol.asyncDispose]()
    const [short, long] = receiver.lists.flatMap(({ items }) => items)
    expect(short?.requestObject).to.equal('body')
    expect(long).to.deep.include({ verb: 'long', annotations: { 'audit.k8s.io/truncated': 'true' } })
    expect(long).not.to.have.property('requestObject')
    expect(receiver.reasons).to.deep.equal(['event is too large even after truncating'])
    expect(receiver.lists.length).to.be.greaterThan(2)
  })

  it('gets no more batches a second than it should', async () => {
    const receiver = new Receiver()
    const webhook = receiver.open({ maxBatchSize: 1, throttle: { qps: 1, burst: 3 } })
    for (let i = 0; i < 10; i++) webhook.write(event(String(i)))
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(receiver.lists).to.have.length(3)
    await webhook[Symbol.asyncDispose]()
    expect(receiver.verbs).to.have.length(10)
  })
})
