// All suites of test/programs/envtest, with our programs and with upstream's: the same specs run and pass.
import { expect } from 'chai'
import { envtestSuites, ourAssets, runSuite, withRealAssets, type EnvtestSuite } from '#test/clients/envtest-suites.ts'

describe('suites that start a control plane by envtest', () => {
  for (const name of Object.keys(envtestSuites) as EnvtestSuite[])
    it(`${name} passes with our programs as with upstream's`, async function () {
      this.timeout(60 * 60_000)
      const times: number[] = []
      const timed = async (assets: string) => {
        const started = performance.now()
        const result = await runSuite(name, assets)
        times.push((performance.now() - started) / 1000)
        return result
      }
      const real = await withRealAssets(timed)
      const ours = await timed(ourAssets)
      console.log(`      ${name}: upstream ${times[0]?.toFixed(1)} s, ours ${times[1]?.toFixed(1)} s, ${ours.summary}`)
      expect(ours.code, ours.failures).to.equal(real.code)
      expect(ours.summary).to.equal(real.summary)
    })
})
