import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { expect } from 'chai'
import { parse } from 'yaml'
import { freePort, kcpProgram, runKcp, startKcp, type CommandResult } from '#test/support/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'

/** Every file below a directory with its content, to prove that nothing was changed. */
function contents(dir: string): Record<string, string> {
  if (!existsSync(dir)) return {}
  const files = readdirSync(dir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
  return Object.fromEntries(
    files.map((entry) => {
      const file = join(entry.parentPath, entry.name)
      return [file, readFileSync(file).toString('base64')]
    }),
  )
}

const start = (rootDir: string, port: number): Promise<CommandResult> =>
  runKcp(['start', '--root-dir', rootDir, '--port', String(port)], { expectCode: 'any', timeoutMs: 20_000 })

function expectOneLine(result: CommandResult, ...words: (string | RegExp)[]): void {
  expect(result.code, result.stderr).to.be.oneOf([1, 2])
  expect(result.stdout).to.equal('')
  expect(result.stderr.trimEnd().split('\n')).to.have.length(1)
  expect(result.stderr).to.match(/^kcp: /)
  for (const word of words) expect(result.stderr).to.match(word instanceof RegExp ? word : new RegExp(word))
}

describe('kcp start', () => {
  let kcp: KcpInstance
  before(async () => {
    kcp = await startInstance()
  })
  after(() => kcp[Symbol.asyncDispose]())

  it('writes admin.kubeconfig for its owner only, with context root on 127.0.0.1', () => {
    const file = join(kcp.rootDir, 'admin.kubeconfig')
    expect(statSync(file).mode & 0o777).to.equal(0o600)
    expect(statSync(kcp.rootDir).mode & 0o077).to.equal(0)
    expect(parse(readFileSync(file, 'utf8'))).to.deep.include({ 'current-context': 'root' })
    expect(readFileSync(file, 'utf8')).to.include(`https://127.0.0.1:${kcp.port}/clusters/root`)
  })

  it('listens on the loopback address only', () => {
    const listening = readFileSync('/proc/net/tcp', 'utf8') + readFileSync('/proc/net/tcp6', 'utf8')
    const port = kcp.port.toString(16).toUpperCase().padStart(4, '0')
    const addresses = listening.split('\n').flatMap((line) => {
      const [, local, , state] = line.trim().split(/\s+/)
      return state === '0A' && local?.endsWith(`:${port}`) === true ? [local] : []
    })
    expect(addresses).to.deep.equal([`0100007F:${port}`])
  })

  it('keeps every secret readable by the owner only', () => {
    const files = readdirSync(kcp.rootDir, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile())
    const readable = files
      .map((entry) => join(entry.parentPath, entry.name))
      .filter((file) => readFileSync(file).includes('PRIVATE KEY') && (statSync(file).mode & 0o077) !== 0)
    expect(readable).to.deep.equal([])
  })

  it('says what to do first where there is none of its kinds yet', async () => {
    const { stderr } = await kcp.admin.kubectl(['get', 'lc,mc,pl'])
    expect(stderr).to.match(/Warning: create the first one: .*LogicalCluster/)
    expect(stderr).to.include('Warning: register the first one: kcp member join NAME --kubeconfig FILE')
    expect(stderr).to.include('kcp placement explain')
  })

  it('prints a kubeconfig of a logical cluster with admin rights inside it and none outside', async () => {
    const acme = await kcp.tenant('acme')
    await kcp.tenant('bob')
    const whoami = await acme.kubectl(['auth', 'can-i', '*', '*', '--all-namespaces'])
    expect(whoami.stdout.trim()).to.equal('yes')
    await acme.kubectl(['create', 'configmap', 'mine'])
    for (const path of [
      '/clusters/root/api/v1/namespaces',
      '/clusters/bob/api/v1/namespaces',
      '/clusters/*/api/v1/namespaces',
    ])
      expect((await acme.http.request('GET', path)).status, path).to.be.oneOf([401, 403])
  })

  it('refuses a kubeconfig for a missing logical cluster or an invalid name', async () => {
    const run = (name: string) => runKcp(['kubeconfig', name, '--root-dir', kcp.rootDir], { expectCode: 'any' })
    expectOneLine(await run('nobody'), 'no LogicalCluster "nobody"')
    expectOneLine(await run('../root'), /"\.\.\/root" is not a valid name/)
    expectOneLine(await runKcp(['kubeconfig', 'acme', '--root-dir', '/nowhere'], { expectCode: 'any' }), 'missing')
  })

  it('refuses a port in use, without creating the directory', async () => {
    const dir = join(mkdtempSync(join(tmpdir(), 'kcp-contract-')), 'new')
    expectOneLine(await start(dir, kcp.port), String(kcp.port), 'in use')
    expect(existsSync(dir)).to.equal(false)
  })

  it('refuses a directory that another process uses, which is not affected', async () => {
    const stable = (): Record<string, string> => {
      const { [join(kcp.rootDir, 'data', 'kcp.db-wal')]: _wal, ...rest } = contents(kcp.rootDir)
      return Object.fromEntries(Object.entries(rest).filter(([file]) => !file.endsWith('-shm')))
    }
    const before = stable()
    expectOneLine(await start(kcp.rootDir, await freePort()), 'in use|another process')
    expect(stable()).to.deep.equal(before)
    await kcp.admin.kubectl(['create', 'configmap', 'still-here'])
  })

  it('exits 0 on SIGTERM, also with open watches, and keeps all objects over the restart', async () => {
    await kcp.admin.kubectl(['create', 'configmap', 'kept', '--from-literal=a=b'])
    const uid = async () => (await kcp.admin.kubectl(['get', 'lc', 'acme', '-o', 'jsonpath={.metadata.uid}'])).stdout
    const uidBefore = await uid()
    await using watch = await kcp.admin.http.watch('/clusters/root/api/v1/configmaps?watch=true')
    await watch.next()
    const began = performance.now()
    kcp.process.send('SIGTERM')
    expect(await kcp.process.exited).to.deep.equal({ code: 0, signal: null })
    expect(performance.now() - began).to.be.below(8000)
    await kcp.process.start()
    const kept = await kcp.admin.kubectl(['get', 'configmap', 'kept', '-o', 'jsonpath={.data.a}'])
    expect(kept.stdout).to.equal('b')
    expect(await uid()).to.equal(uidBefore)
    await kcp.admin.kubectl(['wait', '--for=condition=Ready', 'lc/acme', '--timeout=5s'])
  })
})

describe('kcp start on an unusable directory', () => {
  let dir: string
  beforeEach(() => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-contract-'))
  })
  afterEach(() => {
    chmodSync(dir, 0o700)
    rmSync(dir, { recursive: true, force: true })
  })

  for (const { title, prepare, words } of [
    {
      title: 'a file where the directory should be',
      prepare: () => writeFileSync(join(dir, 'root'), 'x'),
      words: ['is not a directory'],
    },
    {
      title: 'files of another program',
      prepare: () => {
        mkdirSync(join(dir, 'root'))
        writeFileSync(join(dir, 'root', 'thesis.tex'), 'x')
      },
      words: ['root', 'other files|foreign'],
    },
    {
      title: 'a directory called data of another program',
      prepare: () => {
        mkdirSync(join(dir, 'root', 'data'), { recursive: true })
        writeFileSync(join(dir, 'root', 'data', 'thesis.tex'), 'x')
      },
      words: ['root'],
    },
    {
      title: 'a database of another program',
      prepare: () => database(join(dir, 'root'), (db) => db.exec('CREATE TABLE songs (title TEXT)')),
      words: ['root'],
    },
    {
      title: 'a file that is not a database',
      prepare: () => {
        mkdirSync(join(dir, 'root', 'data'), { recursive: true })
        writeFileSync(
          join(dir, 'root', 'data', 'kcp.db'),
          'not a database at all, but long enough to be one'.repeat(100),
        )
      },
      words: ['root'],
    },
  ])
    it(`reports it in one line and changes nothing: ${title}`, async () => {
      prepare()
      const before = contents(dir)
      expectOneLine(await start(join(dir, 'root'), await freePort()), ...words)
      expect(contents(dir)).to.deep.equal(before)
    })

  it('reports in one line that the directory cannot be created', async () => {
    expectOneLine(await start('/proc/kcp/root', await freePort()), 'cannot create "/proc/kcp/root"')
  })

  it('reports in one line that the directory is unreadable, and changes nothing', async function () {
    const rootDir = join(dir, 'root')
    mkdirSync(rootDir)
    chmodSync(dir, 0o755)
    chmodSync(rootDir, 0o000)
    const args = ['start', '--root-dir', rootDir, '--port', String(await freePort())]
    // Root reads everything, so run it as user nobody.
    const result =
      process.getuid?.() === 0 ? runAsNobody(args) : await runKcp(args, { expectCode: 'any', timeoutMs: 20_000 })
    expectOneLine(result, 'root', 'EACCES|permission')
  })

  it('reports data of a newer kcp, or overwritten data, in one line and changes nothing', async () => {
    const rootDir = join(dir, 'root')
    const port = await freePort()
    const first = await startKcp(['start', '--root-dir', rootDir, '--port', String(port)], {
      ready: () => existsSync(join(rootDir, 'admin.kubeconfig')),
    })
    await first.stop()
    database(rootDir, (db) => db.exec('PRAGMA user_version = 999'))
    const newer = contents(dir)
    expectOneLine(await start(rootDir, port), 'kcp.db', 'newer')
    expect(contents(dir)).to.deep.equal(newer)
    writeFileSync(
      join(rootDir, 'data', 'kcp.db'),
      'overwritten by a careless hand, long enough to look real'.repeat(99),
    )
    const overwritten = contents(dir)
    expectOneLine(await start(rootDir, port), 'kcp.db')
    expect(contents(dir)).to.deep.equal(overwritten)
  })
})

describe('kcp start on a directory of its own that was damaged', () => {
  let dir: string
  let rootDir: string
  before(async () => {
    dir = mkdtempSync(join(tmpdir(), 'kcp-damaged-'))
    const whole = join(dir, 'whole')
    const first = await startKcp(['start', '--root-dir', whole, '--port', String(await freePort())], {
      ready: () => existsSync(join(whole, 'admin.kubeconfig')),
    })
    // Killed, so that most of the data is still in the log.
    await first.kill()
    await first.stop()
  })
  beforeEach(() => {
    rootDir = join(dir, 'root')
    cpSync(join(dir, 'whole'), rootDir, { recursive: true })
  })
  afterEach(() => rmSync(rootDir, { recursive: true, force: true }))
  after(() => rmSync(dir, { recursive: true, force: true }))

  const half = (file: string): void => truncateSync(file, Math.floor(statSync(file).size / 2))
  for (const { title, file, damage, words } of [
    {
      title: 'an empty database',
      file: 'data/kcp.db',
      damage: (path: string) => truncateSync(path),
      words: ['restore'],
    },
    { title: 'a database without its log', file: 'data/kcp.db-wal', damage: rmSync, words: ['kcp.db', 'restore'] },
    { title: 'a truncated key', file: 'pki/client-ca.key', damage: half, words: ['client-ca.key'] },
    { title: 'a missing key', file: 'pki/serving-ca.key', damage: rmSync, words: ['serving-ca.key', 'missing'] },
    { title: 'a truncated certificate', file: 'pki/serving-ca.crt', damage: half, words: ['serving-ca.crt'] },
    {
      title: 'a truncated key for tokens',
      file: 'pki/service-account.key',
      damage: half,
      words: ['service-account.key'],
    },
  ] satisfies { title: string; file: string; damage: (path: string) => void; words: string[] }[])
    it(`reports it in one line and changes nothing: ${title}`, async () => {
      damage(join(rootDir, file))
      const before = contents(rootDir)
      expectOneLine(await start(rootDir, await freePort()), ...words)
      expect(contents(rootDir)).to.deep.equal(before)
    })
})

function database(rootDir: string, write: (db: DatabaseSync) => void): void {
  mkdirSync(join(rootDir, 'data'), { recursive: true })
  const db = new DatabaseSync(join(rootDir, 'data', 'kcp.db'))
  write(db)
  db.close()
}

function runAsNobody(args: readonly string[]): CommandResult {
  const command = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', kcpProgram, ...args]
  try {
    const env = { ...process.env, PATH: `${join(process.execPath, '..')}:${process.env['PATH'] ?? ''}` }
    execFileSync(command[0]!, command.slice(1), { env, stdio: 'pipe', timeout: 20_000 })
    return { code: 0, stdout: '', stderr: '' }
  } catch (error) {
    const { status, stdout, stderr } = error as { status: number; stdout: Buffer; stderr: Buffer }
    return { code: status, stdout: stdout.toString(), stderr: stderr.toString() }
  }
}

describe('kcp --help', () => {
  for (const command of [[], ['start'], ['kubeconfig'], ['member'], ['member', 'join'], ['operator'], ['apiserver']])
    it(`kcp ${command.join(' ')} --help exits 0 and prints the usage`, async () => {
      const { stdout } = await runKcp([...command, '--help'])
      expect(stdout).to.match(new RegExp(`^Examples:\n[^]*\nUsage: kcp ${command.join(' ')}`))
    })

  it('exits 2 with a hint for an unknown command or flag', async () => {
    const refusals = [
      { args: ['strat'], says: "unknown command 'strat'" },
      { args: ['start', '--rootdir', 'x'], says: "unknown option '--rootdir'" },
      { args: ['start'], says: "required option '--root-dir <dir>' not specified" },
    ]
    for (const { args, says } of refusals) {
      const { stderr } = await runKcp(args, { expectCode: 2 })
      expect(stderr).to.contain(says).and.contain('--help')
    }
  })

  it('prints one line with what to check when a host or member is unreachable or a kubeconfig is unusable', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kcp-kubeconfigs-'))
    const write = async (name: string, user: object): Promise<string> => {
      const file = join(dir, name)
      const config = {
        'current-context': 'x',
        clusters: [{ name: 'x', cluster: { server: 'https://127.0.0.1:1' } }],
        users: [{ name: 'x', user }],
        contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      }
      await writeFile(file, JSON.stringify(config))
      return file
    }
    try {
      const away = await write('away', { token: 'abc' })
      const bytes = await write('bytes', { 'client-certificate-data': 'Zm9v', 'client-key-data': 'Zm9v' })
      const files = await write('files', { 'client-certificate': '/not/there.pem', 'client-key': '/not/there.key' })
      for (const [file, ...words] of [
        [away, '127.0.0.1:1', 'does that server run'],
        [bytes, 'kubeconfig ".*bytes"', 'certificates or key'],
        [files, 'kubeconfig ".*files"', 'could not read', '/not/there.pem'],
      ] as const)
        expectOneLine(await runKcp(['operator', '--kubeconfig', file], { expectCode: 'any' }), ...words)
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('exits 0 on SIGTERM while it waits for a credential plugin', async () => {
    const dir = await mkdtemp(join(tmpdir(), 'kcp-kubeconfigs-'))
    try {
      const [file, asked] = [join(dir, 'kubeconfig'), join(dir, 'asked')]
      // Waits as long as somebody waits for its output.
      const args = ['-c', 'echo asked > "$1"; cat', 'plugin', asked]
      const apiVersion = 'client.authentication.k8s.io/v1'
      const config = {
        'current-context': 'x',
        clusters: [{ name: 'x', cluster: { server: 'https://127.0.0.1:1' } }],
        users: [{ name: 'x', user: { exec: { apiVersion, command: 'sh', args, interactiveMode: 'Never' } } }],
        contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      }
      await writeFile(file, JSON.stringify(config))
      for (const role of ['operator', 'apiserver']) {
        await rm(asked, { force: true })
        await using server = await startKcp([role, '--kubeconfig', file], { ready: () => existsSync(asked) })
        server.send('SIGTERM')
        expect(await server.exited, role).to.deep.equal({ code: 0, signal: null })
        expect(server.log(), role).to.equal('')
      }
    } finally {
      await rm(dir, { recursive: true })
    }
  })

  it('refuses an unknown log level and lists the known ones', async () => {
    const result = await runKcp(['operator', '--log-level', 'loud'], { expectCode: 'any' })
    expect(result.code).to.equal(2)
    expect(result.stderr).to.match(/--log-level.*debug, info, warn, error/)
    expect(result.stderr).to.match(/try --help/)
  })
})
