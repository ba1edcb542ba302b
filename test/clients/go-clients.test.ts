// Go programs in the style of operators: client-go's typed, dynamic and metadata clients, informers, leader election,
// and a controller-runtime manager; once with a client-go that lists first, once with one that streams its initial
// list.
import { expect } from 'chai'
import { startInstance, type KcpInstance } from '#test/integration/kcp-instance.ts'
import { runCommand } from '#test/support/index.ts'
import { ensureGoClients } from './go-program.ts'

const scenarios = ['typed', 'apply', 'informers', 'dynamic', 'lease', 'discovery', 'pages', 'manager', 'steady']
const builds = [
  { title: 'client-go 0.34', moduleFile: 'go.mod' },
  { title: 'client-go 0.36', moduleFile: 'watchlist.mod' },
]

describe('Go clients in a logical cluster', function () {
  this.timeout(30 * 60_000) // the first build compiles everything
  let kcp: KcpInstance
  before(async () => {
    kcp = await startInstance()
  })
  after(() => kcp[Symbol.asyncDispose]())

  for (const { title, moduleFile } of builds)
    describe(title, () => {
      let program: string
      let kubeconfig: string
      before(async () => {
        program = await ensureGoClients(moduleFile)
        kubeconfig = (await kcp.tenant(title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'))).kubeconfig
      })

      for (const scenario of scenarios)
        it(scenario, async () => {
          const { code, stderr } = await runCommand(program, [kubeconfig, scenario], { expectCode: 'any' })
          expect(code, stderr.slice(-4000)).to.equal(0)
        })
    })
})
