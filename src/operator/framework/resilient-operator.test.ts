import { spawnSync } from 'node:child_process'
import { expect } from 'chai'

describe('the operator library', () => {
  it('is loaded and constructed without an API client of its own', function () {
    this.timeout(20_000)
    // In a new process: another test may have loaded client-node here.
    const script = `
      const { registerHooks } = await import('node:module')
      const loaded = new Set()
      registerHooks({ load: (url, context, next) => (loaded.add(/node_modules\\/((?:@[^/]+\\/)?[^/]+)/.exec(url)?.[1]), next(url, context)) })
      const { ResilientOperator } = await import('./resilient-operator.ts')
      class Idle extends ResilientOperator { async init() { this.initialized = true } }
      const operator = new Idle({})
      await operator.start()
      console.log(JSON.stringify([operator.initialized, ['@dot-i/k8s-operator', '@kubernetes/client-node', 'gaxios'].filter((name) => loaded.has(name))]))`
    const env = { ...process.env, KUBECONFIG: '/nonexistent' }
    const options = { cwd: import.meta.dirname, env, encoding: 'utf8' } as const
    const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], options)
    const hint = "if it names client-node, the installed packages are not those of package-lock.json: run 'npm ci'"
    expect(stdout, `${stderr}${hint}`).to.equal('[true,["@dot-i/k8s-operator"]]\n')
  })
})
