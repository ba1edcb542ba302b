// Boots real clusters for trying things out: a host and members with nodes, until taken down again. Called by `make
// clusters-up`, `make clusters-down` and `make clusters-list`.

import { Command } from 'commander'
import { withFileLock } from '#test/support/file-lock.ts'
import {
  clusterPrograms,
  ensurePrograms,
  ensureSystemPackages,
  newRun,
  startCluster,
  type Cluster,
} from '#test/support/index.ts'
import { isAbandoned, readRecords, runsLock, type RunRecord } from '#test/support/run-record.ts'
import { chooseProvider } from '#test/support/kind/engine.ts'
import { programPath } from '#test/support/programs.ts'
import { endRun } from '#test/support/run.ts'

const say = (line: string): void => void process.stdout.write(`${line}\n`)
const progress = (line: string): void => void process.stderr.write(`${line}\n`)

const program = new Command('clusters').description(
  'real Kubernetes clusters on this machine: members of kind where a container engine answers, else without one (KCP_TEST_CLUSTERS=kind|built-in decides)',
)
program
  .command('up')
  .description('boot a host cluster (control plane) and members with a node each; they stay until `down`')
  .option('--name <name>', 'name of the host cluster', 'host')
  .option('--members <names>', 'names of the members, with commas; empty for none', 'east,west')
  .action(async ({ name, members }: { name: string; members: string }) => {
    await up(
      name,
      members.split(',').filter((member) => member !== ''),
    )
  })
program
  .command('down')
  .description('end clusters and remove all their resources')
  .argument('[run]', 'id of the run, as `list` shows it; all that `up` made by default')
  .action(down)
program.command('list').description('list the clusters on this machine').action(list)
program.addHelpText(
  'after',
  '\nPrograms are built once, from pinned modules: this takes minutes the first time. Cache: $KCP_CACHE, else ~/.cache/kcp',
)

await program.parseAsync().catch((error: unknown) => {
  progress(`clusters: ${error instanceof Error ? error.message : String(error)}`)
  process.exitCode = 1
})

async function up(host: string, members: string[]): Promise<void> {
  const there = readRecords().find((record) => record.name === host && !isAbandoned(record))
  if (there !== undefined) {
    say(`"${host}" is up already; take it down first to change it.`)
    tell(there)
    return
  }
  const stop = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const)
    process.once(name, () => stop.abort(new Error(`stopped by ${name}`)))
  const { signal } = stop
  const provider = await chooseProvider(process.env.KCP_TEST_CLUSTERS, { fallback: 'any' })
  const engine = provider.kind === 'kind' ? provider.engine : undefined
  progress(engine === undefined ? 'members without a container engine' : `members of kind, with ${engine}`)
  await ensurePrograms(clusterPrograms, { signal, log: progress })
  const nodesImpossible = engine === undefined ? await ensureSystemPackages({ signal, log: progress }) : undefined
  if (nodesImpossible !== undefined) progress(`members get no node, so no pods: ${nodesImpossible}`)
  const nodes = nodesImpossible === undefined ? 1 : 0
  const run = await newRun({ keepAs: host, signal, log: progress })
  const boot = async (name: string, options: { nodes: 0 | 1 }): Promise<Cluster> => {
    const started = performance.now()
    const cluster = await startCluster({ name, run, signal, engine, controllerManager: true, ...options })
    progress(`${name}: ready after ${((performance.now() - started) / 1000).toFixed(1)} s`)
    return cluster
  }
  progress(`booting ${[host, ...members].join(', ')} ...`)
  const booting = [boot(host, { nodes: 0 }), ...members.map((member) => boot(member, { nodes }))]
  try {
    await Promise.all(booting)
  } catch (error) {
    stop.abort(error)
    await Promise.allSettled(booting)
    await run.stop()
    throw error
  }
  tell(run.record)
}

function tell(record: RunRecord): void {
  const sorted = [...record.clusters].sort((a, b) => a.name.localeCompare(b.name))
  const host = sorted.find(({ name }) => name === record.name)
  const members = sorted.filter((cluster) => cluster !== host)
  if (host === undefined) return
  say(`\nrun ${record.id}, since ${record.createdAt}`)
  for (const { name, kubeconfig, node } of [host, ...members]) {
    say(`  ${name.padEnd(10)} ${(node ? 'with a node' : 'no node').padEnd(12)} ${kubeconfig}`)
  }
  say(`\nNext:\n  export PATH=${programPath('kubectl').replace(/\/kubectl$/, '')}:$PATH`)
  say(`  export KUBECONFIG=${host.kubeconfig}`)
  const [member] = members
  if (member !== undefined) {
    say(`  kubectl --kubeconfig ${member.kubeconfig} get nodes`)
    say(`  bin/kcp member join ${member.name} --kubeconfig ${member.kubeconfig} --host-kubeconfig ${host.kubeconfig}`)
  }
  say(`  make clusters-down`)
}

async function down(id: string | undefined): Promise<void> {
  await withFileLock(runsLock(), async () => {
    const all = readRecords()
    const chosen = all.filter((record) =>
      id === undefined ? record.name !== undefined || isAbandoned(record) : record.id === id,
    )
    if (id !== undefined && chosen.length === 0) throw new Error(`there is no run "${id}"`)
    for (const record of chosen) {
      await endRun(record)
      say(`run ${record.id} (${record.clusters.map(({ name }) => name).join(', ')}) is down`)
    }
    if (chosen.length === 0) say('nothing is up')
  })
}

function list(): void {
  const records = readRecords()
  if (records.length === 0) say('nothing is up')
  for (const record of records) {
    const kind = isAbandoned(record)
      ? 'abandoned, the next run or `down` cleans it'
      : record.name === undefined
        ? 'a test'
        : 'kept'
    say(`run ${record.id} (${kind})`)
    for (const { name, kubeconfig } of record.clusters) say(`  ${name.padEnd(10)} ${kubeconfig}`)
  }
}
