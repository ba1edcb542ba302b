// Our kube-apiserver and etcd for suites of controllers, in the place of upstream's.
import { expect } from 'chai'
import { ourAssets, runSuite } from './envtest-suites.ts'

describe('suites that start a control plane by envtest, with our programs', function () {
  this.timeout(30 * 60_000) // the first build compiles everything

  // test/long/programs/envtest.test.ts runs all of them, and compares with upstream's programs.
  for (const name of ['cert-controller'] as const)
    it(`passes ${name}`, async () => {
      const { code, failures, summary } = await runSuite(name, ourAssets)
      expect(code, failures).to.equal(0)
      expect(Number(/\d+/.exec(summary)?.[0])).to.be.greaterThan(3)
    })
})
