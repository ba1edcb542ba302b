import { expect } from 'chai'
import { traceparentOf, tryTraceparent } from './traceparent.ts'

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736'
const spanId = '00f067aa0ba902b7'

describe('the header traceparent', () => {
  for (const { title, header, expected } of [
    { title: 'names a sampled span', header: `00-${traceId}-${spanId}-01`, expected: true },
    { title: 'names a span that is not sampled', header: `00-${traceId}-${spanId}-00`, expected: false },
    { title: 'has other flags too', header: `00-${traceId}-${spanId}-03`, expected: true },
    { title: 'may be of a later version', header: `01-${traceId}-${spanId}-01-more`, expected: true },
    { title: 'of this version has no more fields', header: `00-${traceId}-${spanId}-01-more`, expected: undefined },
    { title: 'is never of version ff', header: `ff-${traceId}-${spanId}-01`, expected: undefined },
    { title: 'needs a trace', header: `00-${'0'.repeat(32)}-${spanId}-01`, expected: undefined },
    { title: 'needs a span', header: `00-${traceId}-${'0'.repeat(16)}-01`, expected: undefined },
    { title: 'has lower-case digits', header: `00-${traceId.toUpperCase()}-${spanId}-01`, expected: undefined },
    { title: 'is short', header: `01-${traceId}-${spanId}-01-${'a'.repeat(300)}`, expected: undefined },
    { title: 'is ignored if it is other text', header: 'from a client', expected: undefined },
    { title: 'may be absent', header: undefined, expected: undefined },
  ])
    it(title, () => {
      const reference = expected === undefined ? undefined : { traceId, spanId, isSampled: expected }
      expect(tryTraceparent(header)).to.deep.equal(reference)
    })

  it('is written as it is read', () => {
    for (const isSampled of [true, false])
      expect(tryTraceparent(traceparentOf({ traceId, spanId, isSampled }))).to.deep.equal({
        traceId,
        spanId,
        isSampled,
      })
  })
})
