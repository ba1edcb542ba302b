// The packages of a release, as their users take them: the npm package in a project of its own, the single file with
// nothing beside it, the list of components.
import { expect } from 'chai'
import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, dirname, join } from 'node:path'
import { ensurePrograms, freePort, repositoryRoot, runCommand, startProcess } from '#test/support/index.ts'
import { runSuite } from '#test/clients/envtest-suites.ts'

const packages = join(repositoryRoot, 'dist/packages')

describe('the packages', function () {
  this.timeout(300_000)
  const dir = mkdtempSync(join(tmpdir(), 'kcp-packages-'))
  let files: readonly string[] = []
  const fileOf = (pattern: RegExp): string => join(packages, files.find((name) => pattern.test(name)) ?? 'missing')

  before(async () => {
    await runCommand(process.execPath, [join(repositoryRoot, 'scripts/packages.ts')], { timeoutMs: 280_000 })
    files = readFileSync(join(packages, 'SHA256SUMS'), 'utf8')
      .trimEnd()
      .split('\n')
      .map((line) => line.split('  ')[1] ?? '')
  })
  after(() => rmSync(dir, { recursive: true, force: true }))

  it('are four, with their checksums', async () => {
    expect(files).to.have.length(4)
    await runCommand('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: packages })
  })

  it('list all components with licences', () => {
    const { components } = JSON.parse(readFileSync(fileOf(/sbom/), 'utf8')) as {
      components: { name: string; type: string; licenses?: object[] }[]
    }
    const names = components.map(({ name }) => name)
    expect(names).to.include.members(['node', 'fastify', '@kubernetes/client-node', 'commander'])
    const without = components.filter(({ type, licenses }) => type === 'library' && licenses === undefined)
    expect(without.map(({ name }) => name)).to.deep.equal([])
  })

  it('are used from npm: the program, the library for tests with its types', async () => {
    const project = join(dir, 'project')
    await runCommand('mkdir', [project])
    writeFileSync(join(project, 'package.json'), JSON.stringify({ name: 'a', private: true, type: 'module' }))
    const path = `${dirname(process.execPath)}${delimiter}${process.env['PATH'] ?? ''}`
    const env = { PATH: path }
    await runCommand('npm', ['install', '--silent', '--no-audit', '--no-fund', fileOf(/\.tgz$/)], { cwd: project, env })
    const { stdout } = await runCommand(join(project, 'node_modules/.bin/kcp'), ['--version'], { env })
    expect(stdout).to.match(/^\d+\.\d+\.\d+/)
    const source = readFileSync(join(repositoryRoot, 'examples/test-a-controller.ts'), 'utf8')
    writeFileSync(join(project, 'test.ts'), source)
    expect((await runCommand(process.execPath, ['test.ts'], { cwd: project })).stdout).to.contain(
      'the controller works',
    )
    const tsc = join(repositoryRoot, 'node_modules/typescript-7/bin/tsc')
    const flags = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'esnext']
    const types = ['--typeRoots', join(repositoryRoot, 'node_modules/@types'), '--types', 'node']
    await runCommand(process.execPath, [tsc, ...flags, ...types, 'test.ts'], { cwd: project })
  })

  it('have a single file that needs nothing beside it', async () => {
    const file = fileOf(/linux-(amd64|arm64)$/)
    const { kubectl } = await ensurePrograms(['kubectl'])
    const env = { PATH: '/usr/bin:/bin', XDG_CACHE_HOME: join(dir, 'cache'), HOME: dir }
    const rootDir = join(dir, 'data')
    const port = await freePort()
    const args = ['start', '--root-dir', rootDir, '--port', String(port)]
    const logFile = join(dir, 'kcp.log')
    const ready = () => existsSync(logFile) && readFileSync(logFile, 'utf8').includes('kcp is ready')
    await using _ = await startProcess({ name: 'kcp', command: file, args, env, logFile, ready })
    await runCommand(file, ['create', 'acme', '--root-dir', rootDir], { env })
    // So large that a thread prepares it.
    const data = Object.fromEntries(Array.from({ length: 900 }, (_, i) => [`k${i}`, 'x'.repeat(1000)]))
    const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'large', namespace: 'default' }, data }
    const connect = (words: string[], input?: string) =>
      runCommand(file, ['connect', 'acme', '--root-dir', rootDir, '--', kubectl, ...words], {
        env,
        ...(input !== undefined && { input }),
      })
    await connect(['create', '-f', '-'], JSON.stringify(object))
    expect((await connect(['get', 'configmap', 'large', '-o', 'name'])).stdout).to.equal('configmap/large\n')
  })

  it('have a single file that stands in for kube-apiserver and etcd', async () => {
    const assets = join(dir, 'assets')
    await runCommand('mkdir', [assets])
    for (const name of ['kube-apiserver', 'etcd']) symlinkSync(fileOf(/linux-(amd64|arm64)$/), join(assets, name))
    const { code, failures } = await runSuite('cert-controller', assets)
    expect(code, failures).to.equal(0)
  })
})
