// Stateful applications that move to and fro between two real members with their volumes, while clients use them: no
// acknowledged row may be lost, and every file must arrive as it was. KCP_TEST_MOVES (default 20): moves of the database.
// KCP_TEST_FILES (default 100,000): small files of the folder that moves.
import { expect } from 'chai'
import { ensurePrograms, needsLoopDevices, needsNodes, startProcess, waitFor } from '#test/support/index.ts'
import { deleteAll } from '#test/e2e/delete-all.ts'
import { endLabAfterAll } from '#test/e2e/lab.ts'
import { configMap, postgresPrograms, stateful, StatefulTenant } from './stateful/stateful-tenant.ts'

const moves = Number(process.env['KCP_TEST_MOVES'] ?? 20)
const files = Number(process.env['KCP_TEST_FILES'] ?? 100_000)

endLabAfterAll()

describe('stateful applications that move', function () {
  this.timeout(3_600_000)
  const stack = new AsyncDisposableStack()
  let tenant: StatefulTenant

  before(async function () {
    this.timeout(30 * 60_000) // a cold cache builds the programs of the storage first
    await needsNodes(this)
    await needsLoopDevices(this)
    tenant = stack.use(await StatefulTenant.make())
    stack.defer(() => deleteAll(tenant.installation.admin))
  })
  after(async function () {
    this.timeout(180_000)
    await stack.disposeAsync()
  })

  it(`PostgreSQL loses no acknowledged row in ${moves} moves, and is away for about as long as was announced`, async () => {
    await tenant.beginPostgres('sql')
    for (let count = 1; count <= moves; count++) {
      const since = Date.now() / 1000
      const { seconds, said } = await tenant.move('sql', 'pg', count % 2 === 1 ? 'west' : 'east')
      const rows = await tenant.rowsAfter('sql', since)
      const announced = said.findLast(({ phase }) => phase === 'Ready')?.expectedDowntimeSeconds
      const { bytes = 0, sentBytes = 0, rounds = 0 } = said.at(-1) ?? {}
      process.stdout.write(
        `      move ${count}: ${seconds.toFixed(1)} s, ${rounds} rounds, ${bytes} bytes, ${sentBytes} sent, announced ${announced ?? '?'} s, without answer ${rows.longestGap} s, ${rows.acknowledged} rows\n`,
      )
      expect(rows.missing, `acknowledged rows that are missing after move ${count}`).to.deep.equal([])
    }
    const pages = await tenant.as(
      'sql',
      'exec',
      'pg-0',
      '--',
      `${postgresPrograms}/psql`,
      '-U',
      'postgres',
      '-h',
      '127.0.0.1',
      '-Atc',
      amcheck,
    )
    expect(pages).to.contain('1')
  })

  it('SQLite has every committed row, in a database without faults', async () => {
    await tenant.begin('lite', configMap('scripts', ['sqlite.py']), stateful('lite', ['python3', '/scripts/sqlite.py']))
    await tenant.readyIn('lite', 'lite', 'east')
    const program = (await ensurePrograms(['kubectl'])).kubectl
    const args = ['--kubeconfig', tenant.kubeconfig, '-n', 'lite', 'logs', '-f', 'lite-0']
    let printed = 0
    for (const member of ['west', 'east']) {
      const follow = await startProcess({ name: `follow-before-${member}`, command: program, args })
      await waitFor(() => follow.log().split('\n').length > 20, { what: 'rows', deadlineMs: 60_000 })
      await tenant.move('lite', 'lite', member)
      await follow.stop()
      const numbers = follow.log().split('\n').map(Number).filter(Number.isInteger)
      printed = Math.max(printed, ...numbers)
    }
    const script =
      "import sqlite3; d = sqlite3.connect('file:/data/rows.db?mode=ro', uri=True); print(d.execute('pragma integrity_check').fetchone()[0], *d.execute('select count(*), max(n) from rows').fetchone())"
    const [state, count, highest] = (await tenant.as('lite', 'exec', 'lite-0', '--', 'python3', '-c', script))
      .trim()
      .split(' ')
    expect(state).to.equal('ok')
    expect(Number(count), 'rows without a gap').to.equal(Number(highest))
    expect(Number(highest)).to.be.at.least(printed)
  })

  it(`a folder of ${files} small files and of special ones arrives with all content and metadata, but for what was named`, async () => {
    const script = `[ -d /data/many ] || python3 /scripts/make-tree.py /data ${files}; touch /tmp/made; sleep infinity`
    await tenant.begin(
      'tree',
      configMap('scripts', ['make-tree.py', 'list-tree.py']),
      stateful('tree', ['bash', '-c', script], { ready: ['test', '-e', '/tmp/made'], grace: 1 }),
    )
    await tenant.readyIn('tree', 'tree', 'east')
    const list = async (): Promise<string[]> =>
      (await tenant.as('tree', 'exec', 'tree-0', '--', 'python3', '/scripts/list-tree.py', '/data'))
        .trimEnd()
        .split('\n')
    const before = await list()
    const { seconds, said } = await tenant.move('tree', 'tree', 'west')
    const after = await list()
    const notKept = said.findLast((status) => status.notKept !== undefined)?.notKept ?? []
    process.stdout.write(
      `      ${before.length} entries in ${seconds.toFixed(1)} s; not kept: ${notKept.join('; ') || 'nothing'}\n`,
    )
    const { connection, lastRound, rounds } = said.at(-1) ?? {}
    process.stdout.write(
      `      ${rounds ?? 0} rounds, ${JSON.stringify(connection)}, last ${JSON.stringify(lastRound)}\n`,
    )
    // Pods of the members of the lab reach each other.
    expect(connection?.way).to.equal('Direct')
    const arrived = new Set(after)
    const known = new Set(before)
    const changed = before.filter((line) => !arrived.has(line))
    const instead = after.filter((line) => !known.has(line))
    const unnamed = changed.filter((line) => !notKept.some((text) => text.includes(nameIn(line))))
    expect(
      unnamed.slice(0, 20),
      `entries that changed without a word; now: ${instead.slice(0, 20).join('\n')}`,
    ).to.deep.equal([])
    expect(after).to.have.length(before.length - (changed.length - instead.length))
  })

  it('a block volume arrives bit by bit', async () => {
    await tenant.begin('block', stateful('raw', ['sleep', 'infinity'], { block: true, grace: 1 }))
    await tenant.readyIn('block', 'raw', 'east')
    const run = (script: string): Promise<string> => tenant.as('block', 'exec', 'raw-0', '--', 'bash', '-c', script)
    await run('dd if=/dev/urandom of=/dev/data bs=1M count=5 seek=3 conv=fsync 2>/dev/null')
    const before = await run('sha256sum < /dev/data; wc -c < /dev/data')
    await tenant.move('block', 'raw', 'west')
    expect(await run('sha256sum < /dev/data; wc -c < /dev/data')).to.equal(before)
  })
})

/** Reads every page of the index of the rows. */
const amcheck =
  "create extension if not exists amcheck; select count(*) from (select bt_index_check('rows_pkey', true)) as checked"

const nameIn = (line: string): string => /^b?(['"])(.*?)\1 /.exec(line)?.[2] ?? line
