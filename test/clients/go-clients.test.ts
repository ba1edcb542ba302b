// Go programs in the style of operators: client-go's typed, dynamic and metadata clients, informers, leader election,
// and a controller-runtime manager; once with a client-go that lists first, once with one that streams its initial
// list.
import { expect } from 'chai'
import { join } from 'node:path'
import { startInstance, type KcpInstance } from '../integration/kcp-instance.ts'
import { runCommand } from '../support/index.ts'
import { compile, ensureClientProgram } from './client-program.ts'

const scenarios = ['typed', 'informers', 'dynamic', 'lease', 'discovery', 'pages', 'manager']
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
        program = await ensureProgram(moduleFile)
        kubeconfig = (await kcp.tenant(title.toLowerCase().replaceAll(/[^a-z0-9]+/g, '-'))).kubeconfig
      })

      for (const scenario of scenarios)
        it(scenario, async () => {
          const { code, stderr } = await runCommand(program, [kubeconfig, scenario], { expectCode: 'any' })
          expect(code, stderr.slice(-4000)).to.equal(0)
        })
    })
})

/** Builds the program with the modules of this file. */
async function ensureProgram(moduleFile: string): Promise<string> {
  const module = moduleFile.slice(0, -'.mod'.length)
  const isSource = (file: string): boolean => file.endsWith('.go') || file.startsWith(`${module}.`)
  const dir = await ensureClientProgram({
    name: `clients-go-${module}`,
    folder: 'go',
    isSource,
    build: (out, source) =>
      compile(
        'go',
        ['build', `-modfile=${moduleFile}`, '-trimpath', '-ldflags=-s -w', '-o', join(out, 'clients'), '.'],
        {
          cwd: source,
          env: { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' },
        },
      ),
  })
  return join(dir, 'clients')
}
