import { expect } from 'chai'
import { auditPositionAnnotation } from '#crds/index.ts'
import { AuditEvent } from '#virtualapi/request/request-audit.ts'
import { AuditRing, positionText, tryPosition } from './ring.ts'

const event = (text: string, { bodies = {}, isAnonymous = false } = {}): AuditEvent =>
  new AuditEvent({ verb: text, annotations: {} } as never, bodies, isAnonymous)
const verbs = (lines: readonly Buffer[]): string[] =>
  lines.map((line) => (JSON.parse(line.toString()) as { verb: string }).verb)

describe('the audit events that a logical cluster keeps', () => {
  it('are read from any position, which each of them names', () => {
    const ring = new AuditRing(() => 100_000)
    for (const text of ['a', 'b', 'c']) expect(ring.push(event(text), 0)).to.equal(true)
    const all = ring.read(undefined, 100_000)
    expect(verbs(all.lines)).to.deep.equal(['a', 'b', 'c'])
    const [, second] = all.lines
    const { annotations } = JSON.parse(second?.toString() ?? '') as { annotations: Record<string, string> }
    const position = tryPosition(annotations[auditPositionAnnotation] ?? '')
    expect(verbs(ring.read(position, 100_000).lines)).to.deep.equal(['c'])
    expect(ring.read(all.next, 100_000)).to.deep.equal({ lines: [], next: all.next, isGone: false })
    expect(verbs(ring.read(undefined, 1).lines)).to.deep.equal(['a'])
  })

  it('take bounded memory: the oldest go, and their readers are told', () => {
    const ring = new AuditRing(() => 20_000)
    const first = ring.read(undefined, 1).next
    for (let i = 0; i < 5000; i++) ring.push(event(String(i)), 0)
    expect(ring.bytes).to.be.lessThan(20_001)
    expect(ring.read(first, 1).isGone).to.equal(true)
    const { lines, next } = ring.read(undefined, 1_000_000)
    expect(verbs(lines).at(-1)).to.equal('4999')
    expect(lines.length).to.be.greaterThan(30)
    expect(ring.read(next, 1).isGone).to.equal(false)
    expect(ring.end).to.equal(5000)
  })

  it('lose their bodies above 100 KiB, and are dropped if that is not enough', () => {
    const ring = new AuditRing(() => 1_000_000)
    expect(ring.push(event('a', { bodies: { requestObject: JSON.stringify('x'.repeat(200_000)) } }), 0)).to.equal(true)
    const [line] = ring.read(undefined, 1).lines
    expect(line?.toString()).to.include('"audit.k8s.io/truncated":"true"').and.not.to.include('xxx')
    expect(ring.push(event('y'.repeat(200_000)), 0)).to.equal(false)
  })

  it('are not pushed out by strangers', () => {
    const ring = new AuditRing(() => 20_000)
    ring.push(event('mine'), 0)
    for (let i = 0; i < 10_000; i++) ring.push(event('stranger', { isAnonymous: true }), i)
    expect(verbs(ring.read(undefined, 1_000_000).lines))
      .to.include('mine')
      .and.have.length(61)
    expect(ring.push(event('later', { isAnonymous: true }), 60_001)).to.equal(true)
  })

  it('of another life have no position here', () => {
    const [ring, other] = [new AuditRing(() => 1000), new AuditRing(() => 1000)]
    expect(ring.read(other.read(undefined, 1).next, 1).isGone).to.equal(true)
    for (const text of ['', '7', 'zz-1', '00000000-', `${'0'.repeat(8)}-${'9'.repeat(16)}`])
      expect(tryPosition(text), text).to.equal(undefined)
    const { next } = ring.read(undefined, 1)
    expect(tryPosition(positionText(next))).to.deep.equal(next)
  })

  it('end their readers when they are closed', async () => {
    const ring = new AuditRing(() => 1000)
    const waiting = ring.grown(new AbortController().signal)
    ring.close()
    await waiting
    expect(ring.isClosed).to.equal(true)
  })
})
