// Every command of the program, by one table: its help, completion, forms of output, and exit codes.
import { expect } from 'chai'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parse } from 'yaml'
import { completionsOf } from '#cli/commands/completion.ts'
import { commandsWithPaths, examplesOf } from '#cli/examples.ts'
import { createProgram } from '#cli/program.ts'
import { isLongRun, runKcp, type CommandResult } from '#test/support/index.ts'
import { startInstance, type KcpInstance } from './kcp-instance.ts'

interface Row {
  /** Arguments that are right, and find an installation that runs; absent: it would run for long, or change the host. */
  readonly works?: readonly string[]
  /** Arguments with a name that does not exist, and the message. */
  readonly unknown?: readonly [args: readonly string[], says: RegExp]
  /** Arguments that are wrong, and the message. */
  readonly misused: readonly [args: readonly string[], says: RegExp]
  /** Needs no installation, or has another flag for it. */
  readonly isLocal?: true
  /** What shells offer for the first argument, among others. */
  readonly completes?: readonly string[]
}

const missing = /missing required argument/
const noFlag = /unknown option '--nonsense'/
const noCluster = /there is no LogicalCluster "nobody"; kcp list lists them/
const noMember = /there is no MemberCluster "mars"; kcp get members lists them/
const clusters = ['acme', 'beta']

const table: Readonly<Record<string, Row>> = {
  start: { isLocal: true, misused: [['--port', '99999'], /a port is a number from 0 to 65535/] },
  create: {
    works: ['gamma'],
    unknown: [['acme'], /LogicalCluster "acme" exists already/],
    misused: [['Not_A_Name'], /not a valid name/],
  },
  tree: {
    works: [],
    unknown: [['nobody'], noCluster],
    misused: [['-o', 'xml'], /Allowed choices are text, json, yaml/],
    completes: clusters,
  },
  list: { works: [], misused: [['-o', 'xml'], /Allowed choices are table, wide, name, json, yaml/] },
  use: {
    works: ['acme'],
    unknown: [['nobody'], noCluster],
    misused: [['--nonsense'], noFlag],
    completes: [...clusters, '-'],
  },
  get: {
    works: ['configmaps', '-A'],
    unknown: [['configmaps', '--clusters', 'nobody'], noCluster],
    misused: [['pods', '-A', '-n', 'x'], /-A and -n exclude each other/],
    completes: ['deployments', 'members'],
  },
  connect: {
    works: ['acme', '--', 'true'],
    unknown: [['nobody', '--', 'true'], noCluster],
    misused: [[], missing],
    completes: clusters,
  },
  console: {
    works: [],
    unknown: [['nobody'], noCluster],
    misused: [['--url', 'x'], /--url must be https/],
    completes: clusters,
  },
  kubeconfig: {
    works: ['acme'],
    unknown: [['nobody'], noCluster],
    misused: [['acme', '--days', 'x'], /--days must be/],
    completes: clusters,
  },
  credential: { works: ['acme'], unknown: [['nobody'], noCluster], misused: [[], missing], completes: clusters },
  login: {
    isLocal: true,
    misused: [
      ['--oidc-issuer-url', 'http://x', '--oidc-client-id', 'kcp', '--token-cache-storage', 'none'],
      /--oidc-issuer-url must be an https URL/,
    ],
  },
  'snapshot create': {
    works: ['acme', '-o', '-'],
    unknown: [['nobody'], noCluster],
    misused: [['acme', '--volumes'], /--volumes needs --store/],
    completes: clusters,
  },
  transfer: { misused: [['acme'], /required option '--to <file>' not specified/], completes: clusters },
  backup: { misused: [[], /required option '-o, --output <folder>' not specified/] },
  restore: { isLocal: true, misused: [[], missing] },
  'migrate-store': { isLocal: true, misused: [[], /required option '--root-dir <dir>' not specified/] },
  'snapshot list': { works: [], misused: [['-o', 'xml'], /Allowed choices are table, json, yaml/] },
  'snapshot verify': { misused: [[], missing] },
  'snapshot diff': {
    works: ['acme', 'acme'],
    unknown: [['acme', 'nobody'], noCluster],
    misused: [['acme'], missing],
  },
  'snapshot restore': { misused: [['none.kcp.tar.zst'], /restore it where\? --as NAME makes a new logical cluster/] },
  access: { isLocal: true, misused: [[], /KUBERNETES_EXEC_INFO is not set: clients run this command/] },
  join: { misused: [['east'], /required option '--kubeconfig <file>' not specified/] },
  'member join': {
    works: ['lab', '--pull'],
    misused: [['east', '--image', 'x'], /--image is for --pull/],
  },
  'member approve': { unknown: [['mars'], noMember], misused: [[], missing], completes: ['east'] },
  'member revoke': { unknown: [['mars'], noMember], misused: [[], missing], completes: ['east'] },
  'member simulate': { misused: [['paris', '--nodes', '201'], /a whole number from 0 to 200/] },
  sleep: { works: ['acme'], unknown: [['nobody'], noCluster], misused: [[], missing], completes: clusters },
  wake: { works: ['acme'], unknown: [['nobody'], noCluster], misused: [[], missing], completes: clusters },
  cordon: { works: ['east'], unknown: [['mars'], noMember], misused: [[], missing], completes: ['east'] },
  uncordon: { works: ['east'], unknown: [['mars'], noMember], misused: [[], missing], completes: ['east'] },
  drain: {
    works: ['east', '--dry-run'],
    unknown: [['mars'], noMember],
    misused: [['east', '--dry-run', '--undo'], /--dry-run and --undo exclude each other/],
    completes: ['east'],
  },
  fence: { unknown: [['mars'], noMember], misused: [[], missing], completes: ['east'] },
  adopt: {
    unknown: [['shop', '--from', 'mars', '--into', 'acme'], noMember],
    misused: [['shop', '--from', 'east', '--into', 'acme/a/b'], /--into is CLUSTER or CLUSTER\/NAMESPACE/],
  },
  move: {
    works: ['deployment/web', '-c', 'acme', '--to', 'east', '--dry-run'],
    unknown: [
      ['deployment/no', '-c', 'acme', '--to', 'east'],
      /there is no Deployment "default\/no" in logical cluster "acme"/,
    ],
    misused: [['web', '-c', 'acme', '--to', 'east'], /is not KIND\/NAME of a workload; kinds: deployment/],
    completes: ['deployment/', 'namespace/'],
  },
  volumes: {
    works: ['-c', 'acme'],
    unknown: [['--agree', 'data', '-c', 'acme', '-n', 'default'], /no volume of a claim "data" moves there/],
    misused: [['--agree', 'data'], /--agree needs the claim of one namespace/],
  },
  explain: {
    works: ['acme'],
    unknown: [['deployment/no', '-c', 'acme'], /there is no Deployment "default\/no" in logical cluster "acme"/],
    misused: [['nokind/web', '-c', 'acme'], /no logical cluster serves a kind "nokind"/],
    completes: ['acme', 'member/', 'deployment/'],
  },
  'placement explain': {
    works: ['deployment/web', '-c', 'acme'],
    unknown: [['deployment/no', '-c', 'acme'], /there is no Deployment "default\/no"/],
    misused: [['deployment/web'], /which logical cluster\? give --cluster NAME/],
    completes: ['deployment/'],
  },
  usage: {
    works: ['--since', '2h'],
    misused: [['--since', 'yesterday'], /"yesterday" is neither a duration such as 24h or 30d, nor a time in RFC 3339/],
    completes: ['acme'],
  },
  audit: {
    // `acme` keeps no events: audit-clusters.test.ts runs it where some are.
    unknown: [['nobody'], noCluster],
    misused: [['acme', '--since', 'yesterday'], /"yesterday" is neither a duration such as 24h or 30d/],
    completes: clusters,
  },
  top: {
    works: ['members'],
    misused: [['planets'], /Allowed choices are clusters, members, pods/],
    completes: ['clusters', 'pods'],
  },
  export: {
    unknown: [['none.example.com', '-c', 'acme'], /there is no CustomResourceDefinition "none.example.com"/],
    misused: [[], missing],
  },
  bind: {
    unknown: [['acme:none', '-c', 'beta'], /there is no APIExport "none" in logical cluster "acme"/],
    misused: [['acme', '-c', 'beta'], /"acme" is not LOGICALCLUSTER:EXPORT/],
  },
  'crd check': {
    unknown: [['config/crd/none.yaml', 'config/crd/none.yaml'], /cannot read/],
    misused: [[], missing],
  },
  diagnose: { misused: [['--nonsense'], noFlag] },
  version: { works: [], isLocal: true, misused: [['--nonsense'], noFlag] },
  completion: {
    works: ['bash'],
    isLocal: true,
    misused: [['tcsh'], /Allowed choices are bash, zsh, fish/],
    completes: ['zsh'],
  },
  operator: { isLocal: true, misused: [['--log-level', 'loud'], /Allowed choices are debug/] },
  apiserver: { isLocal: true, misused: [['--register', 'some'], /Allowed choices are all/] },
  agent: { isLocal: true, misused: [['--api-port', '99999'], /a port is a number from 0 to 65535/] },
  mover: {
    isLocal: true,
    misused: [
      ['--role', 'source', '--volume', '/', '--credentials', '/', '--listen', 'here'],
      /an address to listen on is HOST:PORT or :PORT/,
    ],
  },
  gateway: { isLocal: true, misused: [['--max-connections', '-1'], /whole number/] },
  unregister: { isLocal: true, misused: [['--nonsense'], noFlag] },
  'seal-key add': { isLocal: true, misused: [['--nonsense'], noFlag] },
  'seal-key use': { isLocal: true, misused: [['--nonsense'], noFlag] },
  'seal-key reseal': { isLocal: true, misused: [['--nonsense'], noFlag] },
  'seal-key drop': { isLocal: true, misused: [['--nonsense'], noFlag] },
}

const program = createProgram()
const all = commandsWithPaths(program)
const leaves = all.filter(({ command }) => command.commands.length === 0)
/** Of the kinds of the table, those that are tested elsewhere: they do not end, or belong to test programs. */
const rows = leaves.flatMap(({ path, command }) =>
  table[path] === undefined ? [] : [{ path, command, row: table[path] }],
)

describe('every command', function () {
  this.timeout(180_000)
  let kcp: KcpInstance
  let dir: string
  let env: Record<string, string | undefined>

  before(async () => {
    kcp = await startInstance()
    dir = await mkdtemp(join(tmpdir(), 'kcp-table-'))
    env = { KUBECONFIG: join(dir, 'kubeconfig'), XDG_CACHE_HOME: dir, HOME: dir }
    const acme = await kcp.tenant('acme')
    await kcp.tenant('beta')
    await kcp.admin.kubectl(['create', '-f', '-'], {
      input: { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name: 'east' } },
    })
    await acme.kubectl(['create', 'deployment', 'web', '--image', 'web:1'])
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
    await rm(dir, { recursive: true })
  })

  const run = (path: string, args: readonly string[], more: Record<string, string> = {}): Promise<CommandResult> =>
    runKcp([...path.split(' '), ...args], { expectCode: 'any', env: { ...env, ...more } })
  const here = ({ isLocal }: Row): string[] => (isLocal === true ? [] : ['--root-dir', kcp.rootDir])
  /** The flags of the installation go before the words of `kcp connect`. */
  const withHere = (args: readonly string[], row: Row): string[] => [...here(row), ...args]

  it('has a row in the table', () => {
    expect(leaves.map(({ path }) => path).filter((path) => table[path] === undefined)).to.deep.equal([])
  })

  it('begins its help with examples that name it', () => {
    for (const { path, command } of all) {
      let text = ''
      command.configureOutput({ writeOut: (part) => (text += part) }).outputHelp()
      expect(text, path).to.match(/^Examples:\n {2}\S/)
      for (const line of examplesOf(path)) expect(path === '' || line.includes(`kcp ${path}`), line).to.equal(true)
    }
  })

  it('completes its flags, and the values of each flag that has fixed ones', () => {
    for (const { path, command } of rows) {
      const words = path.split(' ')
      const flags = completionsOf(program, [...words, '--']).candidates.map(({ word }) => word)
      expect(flags, path)
        .to.include('--help')
        .and.to.include.members(
          command.options.flatMap(({ long, hidden }) => (hidden || long === undefined ? [] : [long])),
        )
      for (const { long, argChoices } of command.options) {
        if (argChoices === undefined || long === undefined) continue
        expect(completionsOf(program, [...words, long, '']).candidates.map(({ word }) => word)).to.deep.equal(
          argChoices,
        )
      }
    }
  })

  it('completes names of the running installation', async () => {
    // Each is a process of its own: a fifth of them shows that the installation is asked.
    const completing = rows.filter(({ row: { completes } }) => completes !== undefined)
    for (const { path, row } of completing.filter((_, i) => isLongRun || i % 5 === 0)) {
      const { stdout } = await runKcp(['__complete', ...path.split(' '), ...here(row), ''], { env })
      expect(
        stdout.split('\n').map((line) => line.split('\t')[0]),
        path,
      ).to.include.members([...(row.completes ?? [])])
    }
    const listed = await runKcp(['__complete', 'get', 'pods', '--root-dir', kcp.rootDir, '--clusters', 'acme,b'], {
      env,
    })
    expect(listed.stdout).to.match(/^acme,beta\t\n:4\n$/)
    const away = await runKcp(['__complete', 'drain', '--root-dir', '/nowhere', ''], { env })
    expect([away.code, away.stdout, away.stderr]).to.deep.equal([0, ':4\n', ''])
  })

  for (const { path, row } of rows) {
    it(`${path} exits 2 where it is misused, and says how`, async () => {
      const [args, says] = row.misused
      const words = row.isLocal === true ? args : withHere(args, row)
      const { code, stdout, stderr } = await run(path, words, { KUBECONFIG: join(dir, 'none') })
      expect([code, stdout], stderr).to.deep.equal([2, ''])
      expect(stderr).to.match(says)
    })

    const { unknown, works } = row
    if (unknown !== undefined)
      it(`${path} exits 1 for a name that does not exist, and says what lists the names`, async () => {
        const { code, stdout, stderr } = await run(path, withHere(unknown[0], row))
        expect([code, stdout], stderr).to.deep.equal([1, ''])
        // A slow machine sees lines about the progress before.
        expect(
          stderr.split('\n').filter((line) => line.startsWith('kcp: ')),
          stderr,
        ).to.have.length(1)
        expect(stderr).to.match(unknown[1])
      })

    if (works === undefined) continue
    it(`${path} works, in each form of output`, async () => {
      const option = leaves.find((one) => one.path === path)?.command.options.find(({ long }) => long === '--output')
      for (const format of option?.argChoices ?? [undefined]) {
        const args = path === 'create' ? [`gamma-${format ?? ''}`] : works
        const { code, stdout, stderr } = await run(
          path,
          withHere([...(format === undefined ? [] : ['-o', format]), ...args], row),
        )
        expect(code, `${path} ${format ?? ''}: ${stderr}`).to.equal(0)
        if (format === 'json') expect(typeof JSON.parse(stdout), path).to.equal('object')
        if (format === 'yaml') expect(typeof parse(stdout), path).to.equal('object')
      }
    })
  }

  it('exits 1 where no server answers, in one line that says what to check', async () => {
    const stopped = join(dir, 'stopped')
    const start = await startInstance()
    const { cp } = await import('node:fs/promises')
    await cp(start.rootDir, stopped, { recursive: true })
    await start[Symbol.asyncDispose]()
    const asking = rows.filter(({ row: { works, isLocal } }) => works !== undefined && isLocal !== true)
    for (const { path, row } of asking.filter((_, i) => isLongRun || i % 5 === 0)) {
      if (path === 'credential' || path === 'console') continue
      const { code, stdout, stderr } = await run(path, ['--root-dir', stopped, ...(row.works ?? [])])
      expect([code, stdout, stderr.trim().split('\n').length], `${path}: ${stderr}`).to.deep.equal([1, '', 1])
      expect(stderr, path).to.match(/does that server run|there is no|not served/)
    }
    const host = join(dir, 'host.kubeconfig')
    const cluster = {
      clusters: [{ name: 'x', cluster: { server: 'https://127.0.0.1:1' } }],
      users: [{ name: 'x', user: {} }],
    }
    await writeFile(
      host,
      JSON.stringify({
        ...cluster,
        contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
        'current-context': 'x',
      }),
    )
    const { code, stderr } = await run('list', ['--host-kubeconfig', host])
    expect([code, stderr.includes('does that server run')], stderr).to.deep.equal([1, true])
  })
})
