// Runs the end-to-end tests of Kubernetes against logical clusters of `kcp start`.
//   node scripts/conformance.ts [--help]
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { ensureSystemPackages, repositoryRoot } from '#test/support/index.ts'
import { addPassing, isSkipped, readLists, type RoundName } from '#test/upstream/lists.ts'
import { hasEnded, KeptResults } from '#test/upstream/kept-results.ts'
import type { UpstreamResult } from '#test/upstream/report.ts'
import { resultsPage } from '#test/upstream/results-page.ts'
import { runRound, type Round } from '#test/upstream/round.ts'

const help = `usage: node scripts/conformance.ts [--round NAME]... [--only TEXT]... [--update] [--clusters N]
                                    [--processes N] [--minutes N] [--piece N]

Runs the tests that test/upstream lists as passing, each in every logical cluster, and fails when one does not pass, or when a
test in scope is neither listed there nor, with a reason, in test/upstream/not-passing.md. The tests in scope are those of the
conformance suite, and the others of [sig-api-machinery], [sig-auth], [sig-cli] and [sig-instrumentation].

  --round NAME       one of these only:
                     alone      the tests of passing.txt
                     workloads  the tests of passing-with-workloads.txt, in logical clusters in which Kubernetes' own
                                controllers and scheduler run, and two nodes that kwok simulates
                     nodes      the tests of passing-with-nodes.txt, in logical clusters with these controllers and a
                                node that runs pods; left out, with the reason, where nodes cannot run
                     members    the tests of passing-in-members.txt, in logical clusters whose pods run in a member
                                cluster with a node; left out like round nodes
                     kubectl    Kubernetes' shell tests of kubectl: scripts/kubectl-cmd.ts
                     Without this option: all, and the results are written to docs/reference/conformance.md
  --only TEXT        only tests whose name contains TEXT, also those that are not listed as passing; in round alone
                     without --round
  --update           try the others too, but for those below a heading "Needs ..." or "Skipped ..."; add what passes to the list
  --clusters N       number of logical clusters, at once (2)
  --processes N      number of tests that run at once in each logical cluster (2)
  --minutes N        limit of each round (90)
  --piece N          a run in pieces: ends after N minutes, keeps the results in .run/upstream/results.jsonl, and goes on there
                     the next time. Exits with 3 while tests are left; at the end reports all of them. Delete that
                     file to begin anew. Leaves out the round kubectl`

const { values } = parseArgs({
  options: {
    round: { type: 'string', multiple: true, default: [] },
    only: { type: 'string', multiple: true, default: [] },
    update: { type: 'boolean', default: false },
    clusters: { type: 'string', default: '2' },
    processes: { type: 'string', default: '2' },
    minutes: { type: 'string', default: '90' },
    piece: { type: 'string' },
    help: { type: 'boolean', default: false },
  },
})
const suiteRounds = ['alone', 'workloads', 'nodes', 'members'] as const
const needNodes: readonly string[] = ['nodes', 'members']
const allRounds: readonly string[] = [...suiteRounds, 'kubectl']
const clusters = Number(values.clusters)
const processes = Number(values.processes)
const minutes = Number(values.piece ?? values.minutes)
/** With --piece: what earlier pieces found. */
const kept =
  values.piece === undefined ? undefined : new KeptResults(join(repositoryRoot, '.run/upstream/results.jsonl'))
/** With --piece: the number of tests in a batch. Results are kept after each batch. */
const batchSize = 12
const badRound = values.round.some((name) => !allRounds.includes(name))
if (values.help || badRound || ![clusters, processes].every(isCount) || !(minutes > 0)) {
  console.error(help)
  process.exit(values.help ? 0 : 2)
}

const isComplete = values.round.length === 0 && values.only.length === 0
const rounds = values.round.length > 0 ? values.round : values.only.length > 0 ? ['alone'] : allRounds
const { passing, withWorkloads, withNodes, inMembers, notPassing } = readLists()
const expectedIn: Readonly<Record<RoundName, readonly string[]>> = {
  alone: passing,
  workloads: withWorkloads,
  nodes: withNodes,
  members: inMembers,
}
const listed = new Set([...passing, ...withWorkloads, ...withNodes, ...inMembers])
const known = new Set([...listed, ...notPassing.flatMap(({ names }) => names)])
const abort = new AbortController()
process.once('SIGINT', () => abort.abort(new Error('interrupted')))

const started = performance.now()
const results: UpstreamResult[] = []
let failures = 0
/** With --piece: every test in scope that the test program knows. Empty if this piece has run no test. */
const knownTests: string[] = []
const noNodes = rounds.some((name) => needNodes.includes(name)) ? await ensureSystemPackages() : undefined
if (noNodes !== undefined) console.error(`no round with nodes: ${noNodes}`)
for (const round of suiteRounds)
  if (rounds.includes(round) && !(needNodes.includes(round) && noNodes !== undefined)) {
    if (kept === undefined) await run(round)
    else if (await runPiece(round, kept)) process.exit(3)
  }
if (isComplete && noNodes === undefined)
  writeFileSync(join(repositoryRoot, 'docs/reference/conformance.md'), resultsPage(readLists(), results))
const kubectlLine = rounds.includes('kubectl') && kept === undefined ? `; ${kubectlRound()}` : ''
const passed = results.filter(({ state }) => state === 'passed').length
const seconds = ((performance.now() - started) / 1000).toFixed(0)
console.log(
  `conformance: ${passed} passed in each of ${clusters} logical clusters, ${results.length - passed} did not, ` +
    `${failures} unexpected, in ${seconds} s; ${listed.size} of ${known.size} tests in scope are listed as passing` +
    kubectlLine,
)
process.exitCode = failures > 0 ? 1 : 0

function isCount(value: number): boolean {
  return Number.isInteger(value) && value >= 1 && value <= 16
}

/** Runs a round and prints the tests that did not pass. */
async function run(round: RoundName): Promise<void> {
  const names = namesToRun(expectedIn[round])
  if (names.length === 0) {
    console.error(`no test to run in round ${round}`)
    failures++
    return
  }
  const options = { round, names, clusters, processes, timeoutMs: minutes * 60_000, signal: abort.signal }
  const result = await runRound(options)
  results.push(...result.results)
  report(result, { round, names })
}

/**
 * Runs tests of the round that have no result yet, until the time is over. Resolves with true if tests of this round
 * are left; otherwise prints the tests of the round that did not pass.
 */
async function runPiece(round: RoundName, earlier: KeptResults): Promise<boolean> {
  const names = namesToRun(expectedIn[round])
  const withoutResult = (): string[] => names.filter((name) => !earlier.has(round, name))
  const timeoutMs = minutes * 60_000 - (performance.now() - started)
  // A round takes a minute to start.
  if (withoutResult().length > 0 && timeoutMs > 60_000) {
    const onResults = (found: readonly UpstreamResult[]): void => earlier.add(round, found.filter(hasEnded))
    const batch = { size: batchSize, onResults }
    const options = { round, names: withoutResult(), clusters, processes, timeoutMs, batch, signal: abort.signal }
    knownTests.push(...(await runRound(options)).known)
  }
  const left = withoutResult()
  if (left.length > 0) {
    console.log(`conformance: ${left.length} of ${names.length} tests of round ${round} are left: run this again`)
    return true
  }
  const own = earlier.of(round, names)
  results.push(...own)
  report({ results: own, known: knownTests, logFiles: [join(repositoryRoot, '.run/upstream')] }, { round, names })
  return false
}

function namesToRun(expected: readonly string[]): readonly string[] {
  if (values.only.length > 0) return [...known].filter((name) => values.only.some((text) => name.includes(text)))
  const others = notPassing.filter((section) => !isSkipped(section)).flatMap(({ names }) => names)
  return values.update ? [...expected, ...others] : expected
}

function report(
  { results: own, known: inScope, logFiles }: Round,
  { round, names }: { round: RoundName; names: readonly string[] },
): void {
  const bad = own.filter(({ state }) => state !== 'passed')
  const lost = bad.filter(({ name }) => expectedIn[round].includes(name))
  const found = new Set(own.map(({ name }) => name))
  const missing = names.filter((name) => !found.has(name))
  const unlisted = inScope.filter((name) => !known.has(name))
  const added = own.filter(({ name, state }) => state === 'passed' && !listed.has(name)).map(({ name }) => name)
  for (const result of bad) console.error(describe(result))
  for (const name of missing) console.error(`no such test: ${name}`)
  for (const name of unlisted) console.error(`in no list: ${name}`)
  for (const name of added) console.error(`${values.update ? 'added' : 'passes, but is not listed'}: ${name}`)
  if (values.update) addPassing(added, { round })
  if (bad.length > 0) console.error(`logs: ${logFiles.join(' ')}`)
  failures += lost.length + missing.length + unlisted.length
}

function describe({ name, state, seconds, message }: UpstreamResult): string {
  const [first = ''] = message.split('\n\n')
  return `${state} after ${seconds.toFixed(0)} s: ${name}\n    ${first.slice(0, 2000).replaceAll('\n', '\n    ')}`
}

/** Runs the shell tests of kubectl and returns their output, which ends the summary that this script prints. */
function kubectlRound(): string {
  const script = join(repositoryRoot, 'scripts/kubectl-cmd.ts')
  const args = ['--clusters', String(clusters), ...(values.update ? ['--update'] : [])]
  const { status, stdout } = spawnSync(process.execPath, [script, ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
    encoding: 'utf8',
  })
  if (status !== 0) failures++
  return stdout.trim()
}
