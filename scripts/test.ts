// Runs the suites and counts.   node scripts/test.ts
// all|long|verify|unit|conformance|integration|integration-2|syncer|moves|harness|parity|clients|faults|amplifiers|e2e ...
// `long` is what `make test-long` runs: every suite with more rounds and seeds, parity through a host, and test/long
// besides. Without names of suites, four suites at a time run side by side, then those that measure the machine. What
// the lanes after the first print appears when a suite of theirs has ended. The last line is `N passed, N failed,
// N skipped`. With CI=true a skipped test is a failure: CI has what every test needs.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative, resolve } from 'node:path'
import { prepareTests } from './prepare-tests.ts'

const root = resolve(import.meta.dirname, '..')

interface Suite {
  readonly name: string
  readonly files: readonly string[]
  /** Files of these that another suite has. */
  readonly without?: readonly string[]
  /** Timeout of one test, milliseconds. */
  readonly timeoutMs: number
  /** Tests that failed run again, as below. Default: no. */
  readonly repeats?: boolean
  /** Added to the environment. */
  readonly env?: Readonly<Record<string, string>>
}
interface Counts {
  passed: number
  failed: number
  skipped: number
  skippedNames?: readonly string[]
  /** Names of failed tests, with the first lines of the errors. */
  failedNames?: readonly string[]
  /** Names of tests that failed and were run again, with the first lines of the errors. */
  repeatedNames?: readonly string[]
  /** What kept the process from ending after its tests, in the words of Node; it was ended. */
  leftOpen?: readonly string[]
  msOfFile?: Readonly<Record<string, number>>
  /** Files whose tests had not all ended when the process crashed; absent if it did not. */
  unfinished?: readonly string[]
  /** How many tests of each file passed, failed and were skipped; a failed hook counts as a test. */
  ofFile?: Readonly<Record<string, { readonly passed: number; readonly failed: number; readonly skipped: number }>>
}

/** Integration tests that have suites of their own, so that the lanes below take about as long. */
const syncer = ['test/integration/syncer/**/*.test.ts']
const lateMoves = [
  'test/integration/syncer/move-kills.test.ts',
  'test/integration/syncer/gateway.test.ts',
  'test/integration/gateway/**/*.test.ts',
]
/** About half of the others. */
const secondHalf = [
  'test/integration/{c,d}*.test.ts',
  'test/integration/{member,kubectl,monitoring,operator}*.test.ts',
  'test/integration/simulation/**/*.test.ts',
]
/** End-to-end tests that do not use the lab of the others. */
// One pattern each: for mocha, a pattern with nothing but braces is the name of a file.
const withoutLab = ['chart', 'demo', 'pods-through-replicas'].map((name) => `test/e2e/${name}.test.ts`)
/** Tests that measure times, for which nothing else may run. */
const measuring = ['amplifiers', 'hostile-definitions'].map((name) => `test/faults/${name}.test.ts`)

// Tests of real processes run again once when they fail: on a machine that is shared, one of ten thousand meets a pause
// that no deadline foresaw. If a test fails then too, or a hook does, its whole file runs once more in a new process,
// because what the first try left may be in the way. If the process crashes, the files that had not ended run in a new
// one. The end of the output names them, because each is a defect to mend all the same.
const suites: readonly Suite[] = [
  { name: 'unit', files: ['src/**/*.test.ts', 'scripts/**/*.test.ts', 'console/**/*.test.ts'], timeoutMs: 20_000 },
  { name: 'conformance', files: ['test/conformance/**/*.test.ts'], timeoutMs: 120_000, repeats: true },
  {
    name: 'integration',
    files: ['test/integration/**/*.test.ts'],
    without: [...syncer, ...lateMoves, ...secondHalf],
    timeoutMs: 180_000,
    repeats: true,
  },
  { name: 'integration-2', files: secondHalf, timeoutMs: 180_000, repeats: true },
  { name: 'syncer', files: syncer, without: lateMoves, timeoutMs: 180_000, repeats: true },
  { name: 'moves', files: lateMoves, timeoutMs: 180_000, repeats: true },
  {
    name: 'harness',
    files: ['test/support/**/*.test.ts', 'test/upstream/**/*.test.ts'],
    timeoutMs: 180_000,
    repeats: true,
  },
  { name: 'parity', files: ['test/parity/**/*.test.ts'], timeoutMs: 180_000, repeats: true },
  {
    name: 'clients',
    files: ['test/clients/**/*.test.ts', 'test/manifests/**/*.test.ts'],
    timeoutMs: 180_000,
    repeats: true,
  },
  { name: 'documents', files: ['test/documents/**/*.test.ts'], timeoutMs: 180_000, repeats: true },
  { name: 'console', files: ['test/console/**/*.test.ts'], timeoutMs: 120_000, repeats: true },
  { name: 'faults', files: ['test/faults/**/*.test.ts'], without: measuring, timeoutMs: 300_000, repeats: true },
  { name: 'amplifiers', files: measuring, timeoutMs: 300_000, repeats: true },
  { name: 'e2e', files: ['test/e2e/**/*.test.ts'], without: withoutLab, timeoutMs: 300_000, repeats: true },
  { name: 'e2e-2', files: withoutLab, timeoutMs: 300_000, repeats: true },
]
/** Too slow for every change: run by hand and before a release. */
const longSuites: readonly Suite[] = [
  ...['host', 'aggregator'].map((way) => ({
    name: `parity-${way}`,
    files: ['test/parity/**/*.test.ts'],
    timeoutMs: 180_000,
    repeats: true,
    env: { KCP_PARITY_THROUGH: way },
  })),
  { name: 'exhaustive', files: ['test/long/**/*.test.ts'], timeoutMs: 1_800_000 },
]
const longNames = longSuites.map(({ name }) => name)
const names = ['verify', ...suites.map(({ name }) => name)]
/** Suites that run side by side, the longest first: those that mostly wait for real clusters, and those that compute. */
const waiting = ['e2e', 'syncer', 'e2e-2', 'moves', 'faults']
const computing = [
  'integration',
  'integration-2',
  'parity',
  'verify',
  'clients',
  'unit',
  'console',
  'harness',
  'conformance',
  'documents',
]
/** More files than these have a common cause that another try does not mend. */
const maxRepeatedFiles = 3
/** Where output goes: through at once, or kept until the suite has ended. */
type Output = 'inherit' | 'kept'

async function verify(output: Output): Promise<Counts> {
  const status = await runNode([join(root, 'scripts/verify.ts')], {}, output)
  return status === 0 ? { passed: 1, failed: 0, skipped: 0 } : { passed: 0, failed: 1, skipped: 0 }
}

/** Resolves with the exit code, or the name of the signal that ended the process. */
async function runNode(args: readonly string[], env: NodeJS.ProcessEnv, output: Output): Promise<number | string> {
  const stdio = output === 'inherit' ? 'inherit' : 'pipe'
  const child = spawn(process.execPath, args, { cwd: root, stdio, env: { ...process.env, ...env } })
  const kept: Buffer[] = []
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (chunk: Buffer) => kept.push(chunk))
  const [status, endedBy] = (await once(child, 'close')) as [number | null, string | null]
  process.stderr.write(Buffer.concat(kept))
  return status ?? endedBy ?? 'an unknown signal'
}

async function run(suite: Suite, output: Output): Promise<Counts> {
  const first = await runOnce(suite, output)
  const { ofFile = {}, unfinished = [] } = first
  const failed = Object.keys(ofFile).filter((file) => (ofFile[file]?.failed ?? 0) > 0)
  const files = [...new Set([...failed, ...unfinished])]
  if (suite.repeats !== true || files.length === 0 || failed.length > maxRepeatedFiles) return first
  for (const text of first.failedNames ?? []) repeated.push(`${suite.name}: ${text}`)
  console.error(`== ${suite.name}: again in a new process: ${files.map((file) => relative(root, file)).join(' ')}`)
  const again = await runOnce({ ...suite, files, without: [] }, output)
  const kept = Object.keys(ofFile).filter((file) => !files.includes(file))
  const sum = (part: 'passed' | 'failed' | 'skipped'): number =>
    kept.reduce((total, file) => total + (ofFile[file]?.[part] ?? 0), again[part])
  return { ...again, passed: sum('passed'), failed: sum('failed'), skipped: sum('skipped') }
}

async function runOnce(
  { name, files, without = [], timeoutMs, repeats = false, env: added = {} }: Suite,
  output: Output,
): Promise<Counts> {
  const dir = mkdtempSync(join(tmpdir(), 'kcp-test-'))
  const counts = join(dir, 'counts.json')
  const mocha = [join(root, 'node_modules/mocha/bin/mocha.js'), '--no-config', '--forbid-only', '--extension', 'ts']
  const options = [
    '--reporter',
    join(root, 'scripts/count-reporter.cjs'),
    '--timeout',
    String(timeoutMs),
    '--retries',
    repeats ? '1' : '0',
    ...without.flatMap((file) => ['--ignore', file]),
  ]
  try {
    const args = [
      '--disable-warning=ExperimentalWarning',
      '--max-http-header-size=262144',
      ...mocha,
      ...options,
      ...files,
    ]
    const env = {
      // What Node has compiled of the sources, for the processes of all suites: 3 s of the unit tests.
      NODE_COMPILE_CACHE: join(root, 'node_modules/.cache/compiled'),
      // Fewer garbage collections in etcd, kube-apiserver, kubelet, kubectl: a sixth of their work, for some memory.
      GOGC: '400',
      ...added,
      KCP_TEST_COUNTS: counts,
      ...(isLong ? { KCP_TEST_LONG: '1' } : {}),
    }
    const status = await runNode(args, env, output)
    const result = readCounts(counts)
    if (result === undefined) return { passed: 0, failed: 1, skipped: 0, failedNames: [`the process ended: ${status}`] }
    if (result.unfinished !== undefined) {
      const last = readText(`${counts}.running`)
      result.failed += 1
      result.failedNames = [...(result.failedNames ?? []), `the process ended (${status}) in: ${last}`]
    } else if (status !== 0 && result.failed === 0) {
      result.failed = 1
      result.failedNames = [`the process ended after its tests: ${status}`]
    }
    printSlowest(result)
    for (const title of result.skippedNames ?? []) console.error(`skipped: ${name}: ${title}`)
    for (const text of result.repeatedNames ?? []) repeated.push(`${name}: ${text}`)
    if (result.leftOpen) leftOpen.push(`${name}: ${result.leftOpen.join(', ')}`)
    return result
  } finally {
    rmSync(dir, { recursive: true, force: true })
  }
}

/** Where the time of a suite goes, so that a spec that has become slow is seen. */
function printSlowest({ msOfFile = {} }: Counts): void {
  const slowest = Object.entries(msOfFile)
    .filter(([, ms]) => ms >= 5000)
    .sort(([, a], [, b]) => b - a)
  for (const [file, ms] of slowest) console.error(`${(ms / 1000).toFixed(0).padStart(6)} s  ${relative(root, file)}`)
}

function readCounts(file: string): Counts | undefined {
  const text = readText(file)
  return text === undefined ? undefined : (JSON.parse(text) as Counts)
}

function readText(file: string): string | undefined {
  try {
    return readFileSync(file, 'utf8')
  } catch {
    return undefined
  }
}

const asked = process.argv.slice(2)
const isLong = asked.includes('long')
const known = ['all', 'long', ...longNames, ...names]
if (asked.includes('--help') || asked.length === 0 || asked.some((name) => !known.includes(name))) {
  console.error(`usage: node scripts/test.ts [long] all|${[...names, ...longNames].join('|')} ...`)
  process.exit(asked.includes('--help') ? 0 : 2)
}
const named = asked.filter((name) => name !== 'long' && name !== 'all')
const wanted = named.length > 0 ? named : isLong ? [...names, ...longNames] : names
const total: Counts = { passed: 0, failed: 0, skipped: 0 }
/** Repeated at the end: the suites' own reports are far above by then. */
const failures: string[] = []
/** Tests that failed and were run again, whether they passed then or not. */
const repeated: string[] = []
/** Suites whose process did not end by itself. */
const leftOpen: string[] = []

async function runAndCount(name: string, output: Output): Promise<void> {
  const started = performance.now()
  console.error(`== ${name}`)
  const suite = [...suites, ...longSuites].find((candidate) => candidate.name === name)
  const counts = await (suite === undefined ? verify(output) : run(suite, output))
  console.error(
    `== ${name}: ${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped in ${((performance.now() - started) / 1000).toFixed(0)} s`,
  )
  total.passed += counts.passed
  total.failed += counts.failed
  total.skipped += counts.skipped
  const { failedNames = ['see above'] } = counts
  if (counts.failed > 0) failures.push(...failedNames.map((text) => `${name}: ${text}`))
}

async function prepared(): Promise<void> {
  if (await prepareTests()) return
  total.failed += 1
  failures.push('preparations')
}

if (named.length === 0 && !isLong) {
  await prepared()
  // Lanes share the queues. Two processors are busy with two suites that compute and two that wait.
  const [waits, computes] = [waiting.values(), computing.values()]
  const lanes = [[waits, computes], [waits], [computes], [computes]]
  const runLane = async (queues: (typeof lanes)[number], number: number): Promise<void> => {
    for (const queue of queues) for (const name of queue) await runAndCount(name, number === 0 ? 'inherit' : 'kept')
  }
  await Promise.all(lanes.map(runLane))
  const besides = new Set([...waiting, ...computing])
  for (const name of wanted) if (!besides.has(name)) await runAndCount(name, 'inherit')
} else {
  let isPrepared = false
  for (const name of wanted) {
    if (!isPrepared && name !== 'verify' && name !== 'unit') {
      isPrepared = true
      await prepared()
    }
    await runAndCount(name, 'inherit')
  }
}
for (const text of repeated) console.error(`run again after a failure: ${text}`)
for (const text of leftOpen)
  console.error(`ended a minute after its last test, because something was left open: ${text}`)
for (const failure of failures) console.error(`failed: ${failure}`)
const inCi = process.env['CI'] === 'true'
if (inCi && total.skipped > 0) console.error('a skipped test fails CI: it has all that the tests need')
console.log(`${total.passed} passed, ${total.failed} failed, ${total.skipped} skipped`)
process.exitCode = total.failed > 0 || (inCi && total.skipped > 0) ? 1 : 0
