// kube-rs programs: typed and dynamic API, watchers that list and that stream, a derived kind, a controller.
import { expect } from 'chai'
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { cacheDir, needsTools, runCommand } from '#test/support/index.ts'
import { compile, ensureClientProgram } from './client-program.ts'

const scenarios = ['typed', 'apply', 'watchers', 'custom', 'dynamic', 'controller']

describe('Rust clients in a logical cluster', function () {
  let kcp: KcpInstance | undefined
  let tenant: Tenant
  let program: string
  before(async function () {
    await needsTools(this, [['cargo', '--version']])
    this.timeout(30 * 60_000) // the first build compiles everything
    const isSource = (file: string): boolean => !file.startsWith('target')
    program = join(await ensureClientProgram({ name: 'clients-rust', folder: 'rust', isSource, build }), 'clients')
    kcp = await startInstance()
    tenant = await kcp.tenant('rust')
  })
  after(() => kcp?.[Symbol.asyncDispose]())

  for (const scenario of scenarios)
    it(scenario, async () => {
      const { code, stderr } = await runCommand(program, [tenant.kubeconfig, scenario], { expectCode: 'any' })
      expect(code, stderr.slice(-4000)).to.equal(0)
    })
})

/** Keeps compiled libraries: after a change, only our own code is compiled. */
async function build(dir: string, source: string): Promise<void> {
  const target = join(cacheDir(), 'rust-target')
  const env = { CARGO_INCREMENTAL: '0' }
  await compile('cargo', ['build', '--quiet', '--locked', '--target-dir', target], { cwd: source, env })
  copyFileSync(join(target, 'debug', 'clients'), join(dir, 'clients'))
}
