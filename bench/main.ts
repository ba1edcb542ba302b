// Compares kcp with a real kube-apiserver and etcd.   node bench/main.ts [--only NAME]... [--save]
import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { cpus, hostname, loadavg, totalmem } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { acquireRun, ensurePrograms, repositoryRoot, runCommand } from '#test/support/index.ts'
import { apply } from './apply.ts'
import { audit } from './audit.ts'
import { builds } from './builds.ts'
import { crd } from './crd.ts'
import { create, tenThousand, thousand } from './logical-clusters.ts'
import { envtest } from './envtest.ts'
import { exportsMany } from './exports.ts'
import { fleet } from './fleet.ts'
import { hop } from './hop.ts'
import { hundredThousand } from './hundred-thousand.ts'
import { hostApi } from './host-api.ts'
import { hostStart } from './host-start.ts'
import { hostWrites } from './host-writes.ts'
import type { Measurement, Numbers } from './measurement.ts'
import { memory } from './memory.ts'
import { neighbours } from './neighbours.ts'
import { placement } from './placement.ts'
import { podStreams } from './pod-streams.ts'
import { pull } from './pull.ts'
import { restart } from './restart.ts'
import { onEtcd, onPostgres, sideBySide } from './side-by-side.ts'
import { sleeping } from './sleep.ts'
import { snapshots } from './snapshots.ts'
import { transfer } from './transfer.ts'
import { start } from './start.ts'
import { sync, syncMany } from './sync.ts'
import { syncerMembers } from './syncer-members.ts'
import { watchAcrossMany } from './watch-across.ts'
import { tree } from './tree.ts'
import { tunnel } from './tunnel.ts'
import { usage } from './usage.ts'
import { volumes } from './volumes.ts'
import { idleWatches, watchFanOut } from './watches.ts'
import { workers } from './workers.ts'

const measurements: readonly Measurement[] = [
  start,
  create,
  thousand,
  tenThousand,
  hundredThousand,
  restart,
  crd,
  memory,
  sideBySide,
  onEtcd,
  onPostgres,
  apply,
  watchFanOut,
  idleWatches,
  neighbours,
  hostWrites,
  hostApi,
  hostStart,
  hop,
  workers,
  placement,
  sync,
  syncMany,
  podStreams,
  pull,
  tunnel,
  watchAcrossMany,
  exportsMany,
  tree,
  volumes,
  snapshots,
  sleeping,
  audit,
  usage,
  transfer,
  fleet,
  syncerMembers,
  builds,
  envtest,
]
/** Limit of each measurement, seconds: those of a fleet with 50 members take the longest. */
const maxSeconds = 1500

function help(): string {
  const names = measurements.map(({ name, describes }) => `  ${name.padEnd(14)} ${describes}`)
  return [
    'usage: node bench/main.ts [--only NAME]... [--save]',
    '',
    ...names,
    '',
    '  --save     write the numbers to bench/results',
  ].join('\n')
}

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    save: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
if (values.help || values.only.some((name) => !measurements.some((known) => known.name === name))) {
  console.error(help())
  process.exit(values.help ? 0 : 2)
}

const { kubectl, 'kube-apiserver': apiserver } = await ensurePrograms(['kubectl', 'kube-apiserver', 'etcd'])
const say = (line: string): void => console.error(line)
await runCommand(kubectl, ['version', '--client'])

// Held over all measurements: what dead runs left is swept before the clock runs, not within a start.
const { release } = await acquireRun()

const conditions = {
  date: new Date().toISOString(),
  machine: `${hostname()}: ${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown'}, ${Math.round(totalmem() / 2 ** 30)} GiB`,
  // Above 0.5 other programs were using the machine: then only the ratios are meaningful.
  loadAverage: `load average ${loadavg()[0]?.toFixed(1) ?? 'unknown'}`,
  node: process.version,
  kubernetes: (await runCommand(apiserver, ['--version'])).stdout.trim(),
  commit: execFileSync('git', ['rev-parse', '--short', 'HEAD'], { cwd: repositoryRoot, encoding: 'utf8' }).trim(),
}
say(Object.values(conditions).join('\n'))

const results: Record<string, Numbers> = {}
for (const measurement of measurements) {
  // Without the other build there is nothing to compare.
  const isAsked = values.only.length > 0 ? values.only.includes(measurement.name) : measurement !== builds
  if (!isAsked) continue
  say(`\n${measurement.name}: ${measurement.describes}`)
  const numbers = await measurement.run({ signal: AbortSignal.timeout(maxSeconds * 1000), say })
  results[measurement.name] = numbers
  for (const [name, value] of Object.entries(numbers)) console.log(`  ${name.padEnd(50)} ${value}`)
}
if (values.save) {
  const dir = join(repositoryRoot, 'bench', 'results')
  mkdirSync(dir, { recursive: true })
  // Rows of one build that are run one after the other are kept together.
  const file = join(dir, `${conditions.date.slice(0, 10)}-${conditions.commit}.json`)
  const saved = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { results: typeof results }) : undefined
  writeFileSync(file, `${JSON.stringify({ ...conditions, results: { ...saved?.results, ...results } }, null, 2)}\n`)
  say(`\nsaved as ${file}`)
}
await release()
process.exit()
