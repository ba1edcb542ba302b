// Programs with the two common Java clients: the official one, and fabric8's, which watches over WebSockets.
import { expect } from 'chai'
import { join } from 'node:path'
import { startInstance, type KcpInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { isLongRun, needsTools, runCommand } from '#test/support/index.ts'
import { compile, ensureClientProgram } from './client-program.ts'

/** A virtual machine of Java takes three seconds of a processor to start: what the first client shows, only it does. */
const clients = [
  { title: 'official', scenarios: ['typed', 'informers', 'generic', 'apply', 'election'] },
  {
    title: 'fabric8',
    scenarios: isLongRun ? ['typed', 'informers', 'custom', 'apply', 'election'] : ['informers', 'custom'],
  },
]

describe('Java clients in a logical cluster', function () {
  let kcp: KcpInstance | undefined
  let dir: string
  before(async function () {
    await needsTools(this, [
      ['mvn', '--version'],
      ['javac', '--version'],
    ])
    this.timeout(30 * 60_000) // the first run downloads everything
    dir = await ensureClientProgram({ name: 'clients-java', folder: 'java', build })
    kcp = await startInstance()
  })
  after(() => kcp?.[Symbol.asyncDispose]())

  for (const { title, scenarios } of clients)
    describe(title, () => {
      let tenant: Tenant
      before(async () => {
        tenant = await kcp!.tenant(title)
      })

      for (const scenario of scenarios)
        it(scenario, async () => {
          const path = [join(dir, 'classes'), join(dir, 'dependency', '*')].join(':')
          // Without the optimizing compiler a short program starts in half the time.
          const args = [
            '-XX:TieredStopAtLevel=1',
            '-cp',
            path,
            'clients.Main',
            tenant.kubeconfig,
            `${title}-${scenario}`,
          ]
          const { code, stderr } = await runCommand('java', args, { expectCode: 'any' })
          const said = stderr.split('\n').filter((line) => !line.startsWith('\tat '))
          expect(code, said.join('\n').slice(-4000)).to.equal(0)
        })
    })
})

const build = (dir: string, source: string): Promise<unknown> =>
  compile('mvn', ['--batch-mode', '--quiet', `-Doutput=${dir}`, 'compiler:compile', 'dependency:copy-dependencies'], {
    cwd: source,
  })
