// A sample of test/long/amplifiers that is short enough for every run of the tests: it shows that the measuring works, and
// finds what became quadratic in a common path.
import { expect } from 'chai'
import { failureText, runMatrix } from '../long/amplifiers/run-matrix.ts'
import { fails } from '../long/amplifiers/scenario.ts'

describe('a sample of every input of a tenant', function () {
  this.timeout(120_000)

  it('costs at most n log n', async () => {
    const found = await runMatrix({ timeMs: 25_000, oneOf: 97, only: /^(POST|PUT) / })
    expect(found.requests).to.be.greaterThan(20)
    expect(found.doubled.filter(fails).map(failureText)).to.deep.equal([])
  })
})
