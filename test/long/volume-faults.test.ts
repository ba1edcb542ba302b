// A database that moves with its volume while something fails at each phase of the move: the operator, a mover or a
// kubelet is killed. Each move must end with the database in the new member and every acknowledged row in it, which no two
// writers could have. KCP_TEST_FAULTS: a regular expression for titles of tests, such as "kubelet.*Binding"; all by default.
import { readdirSync, readFileSync } from 'node:fs'
import { expect } from 'chai'
import { needsLoopDevices, needsNodes, waitFor, type Cluster } from '#test/support/index.ts'
import { deleteAll } from '#test/e2e/delete-all.ts'
import { endLabAfterAll } from '#test/e2e/lab.ts'
import { StatefulTenant, type VolumeMove } from './stateful/stateful-tenant.ts'

const only = new RegExp(process.env['KCP_TEST_FAULTS'] ?? '.')
const phases = ['Preparing', 'Copying', 'Ready', 'Finishing', 'Binding'] as const

endLabAfterAll()

describe('a database that moves while something fails', function () {
  this.timeout(1_200_000)
  const stack = new AsyncDisposableStack()
  let tenant: StatefulTenant

  before(async function () {
    this.timeout(30 * 60_000) // a cold cache builds the programs of the storage first
    await needsNodes(this)
    await needsLoopDevices(this)
    tenant = stack.use(await StatefulTenant.make())
    stack.defer(() => deleteAll(tenant.installation.admin))
    await tenant.beginPostgres('sql')
  })
  after(async function () {
    this.timeout(180_000)
    await stack.disposeAsync()
  })

  const clusterOf = (member: string): Cluster => (member === 'east' ? tenant.lab.east : tenant.lab.west)

  /** Kills every process of ours in the cluster's containers that runs the mover; false if there is none. */
  const killMover = (cluster: Cluster): boolean => {
    const isMover = (pid: string): boolean => {
      try {
        const [groups, command] = ['cgroup', 'cmdline'].map((file) => readFileSync(`/proc/${pid}/${file}`, 'utf8'))
        return (
          groups?.includes(`/kcp-${cluster.run.id}-${cluster.name}/`) === true && command?.includes('mover') === true
        )
      } catch {
        return false // it ended meanwhile
      }
    }
    const pids = readdirSync('/proc').filter((entry) => /^\d+$/.test(entry))
    const movers = pids.filter(isMover)
    for (const pid of movers) process.kill(Number(pid), 'SIGKILL')
    return movers.length > 0
  }

  const killKubelet = async (cluster: Cluster): Promise<boolean> => {
    const kubelet = cluster.processes.get('kubelet')
    if (kubelet === undefined) return false
    await kubelet.kill()
    await new Promise((resolve) => setTimeout(resolve, 3000))
    await kubelet.start()
    return true
  }

  const killOperator = async (): Promise<boolean> => {
    for (const program of tenant.installation.processes) {
      await program.kill()
      await program.start()
    }
    await waitFor(async () => (await tenant.volumeMoves('sql')).length >= 0, {
      what: 'the API to answer again',
      deadlineMs: 60_000,
    })
    return true
  }

  const faults: Readonly<Record<string, (move: VolumeMove) => Promise<boolean> | boolean>> = {
    'the operator is killed': killOperator,
    'the mover of the old member is killed': ({ spec }) => killMover(clusterOf(spec.from)),
    'the mover of the new member is killed': ({ spec }) => killMover(clusterOf(spec.to)),
    'the kubelet of the old member is killed': ({ spec }) => killKubelet(clusterOf(spec.from)),
    'the kubelet of the new member is killed': ({ spec }) => killKubelet(clusterOf(spec.to)),
  }

  for (const [title, fault] of Object.entries(faults))
    for (const phase of phases) {
      const name = `loses no acknowledged row if ${title} in phase ${phase}`
      if (!only.test(name)) continue
      it(name, async () => {
        // A brief phase may be over before it is seen: then the next move is the one.
        for (let attempt = 1; attempt <= 3; attempt++) {
          const happened = await moveWith(title, fault, phase)
          if (happened) return
        }
        // Phase Binding begins with the removal of both movers.
        expect(phase === 'Binding' && title.includes('mover'), 'it could not be done in three moves').to.equal(true)
      })
    }

  /** Moves the database while something fails. Resolves with whether it did. */
  const moveWith = async (
    title: string,
    fault: (move: VolumeMove) => Promise<boolean> | boolean,
    phase: string,
  ): Promise<boolean> => {
    const since = Date.now() / 1000
    const to = (await tenant.isReadyIn('sql', 'pg', 'east')) ? 'west' : 'east'
    let happened = 'the phase was not seen'
    const { seconds, said } = await tenant.move('sql', 'pg', to, {
      onLook: async (move) => {
        if (happened === 'it happened' || move.status?.phase !== phase) return
        happened = (await fault(move)) ? 'it happened' : 'nothing was there to kill'
      },
    })
    const rows = await tenant.rowsAfter('sql', since)
    process.stdout.write(
      `      ${title}, ${phase}: ${happened}; ${seconds.toFixed(1)} s, without answer ${rows.longestGap} s, phases ${[...new Set(said.map((one) => one.phase))].join(', ')}\n`,
    )
    expect(rows.missing, 'acknowledged rows that are missing').to.deep.equal([])
    return happened === 'it happened'
  }
})
