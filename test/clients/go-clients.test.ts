// Go programs as operators are written: client-go's typed, dynamic and metadata clients, informers, leader election, and
// a controller-runtime manager; once with a client-go that lists first, once with one that streams its first list.
import { expect } from 'chai'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync } from 'node:fs'
import { arch, platform } from 'node:os'
import { join } from 'node:path'
import { startInstance, type KcpInstance } from '../integration/kcp-instance.ts'
import { cacheDir, repositoryRoot, runCommand } from '../support/index.ts'

const source = join(repositoryRoot, 'test', 'clients', 'go')
const scenarios = ['typed', 'informers', 'dynamic', 'lease', 'discovery', 'pages', 'manager']
const builds = [
  { title: 'client-go 0.34', moduleFile: 'go.mod' },
  { title: 'client-go 0.36', moduleFile: 'watchlist.mod' },
]

describe('Go clients in a logical cluster', function () {
  this.timeout(30 * 60_000) // the first build of all
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

/** The program built with the modules of this file, from the cache if it is there. */
async function ensureProgram(moduleFile: string): Promise<string> {
  const hash = createHash('sha256').update(`${moduleFile} ${platform()} ${arch()}`)
  const files = readdirSync(source).filter((name) => name.endsWith('.go') || name.startsWith(moduleFile.slice(0, -4)))
  for (const file of files.sort()) hash.update(readFileSync(join(source, file)))
  const dir = join(cacheDir(), 'programs', `clients-${hash.digest('hex').slice(0, 16)}`)
  const program = join(dir, 'clients')
  if (existsSync(program)) return program
  mkdirSync(dir, { recursive: true })
  const unfinished = join(dir, `.building-${process.pid}`)
  const args = [
    '-n',
    '10',
    'go',
    'build',
    `-modfile=${moduleFile}`,
    '-trimpath',
    '-ldflags=-s -w',
    '-o',
    unfinished,
    '.',
  ]
  await runCommand('nice', args, {
    cwd: source,
    env: { CGO_ENABLED: '0', GOWORK: 'off', GOFLAGS: '-mod=readonly -buildvcs=false' },
    timeoutMs: 30 * 60_000,
  })
  renameSync(unfinished, program)
  return program
}
