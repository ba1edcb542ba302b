// Runs the Kubernetes conformance suite against logical clusters of `kcp start`.   node scripts/conformance.ts [--help]
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { startInstance } from '../test/integration/kcp-instance.ts'
import { ensurePrograms, repositoryRoot } from '../test/support/index.ts'
import { addPassing, readLists } from '../test/upstream/lists.ts'
import type { UpstreamResult } from '../test/upstream/report.ts'
import { standInNode } from '../test/upstream/stand-in-node.ts'
import { startWorkloadControllers } from '../test/upstream/workload-controllers.ts'
import { runSuite, type SuiteRun } from '../test/upstream/suite.ts'

const help = `usage: node scripts/conformance.ts [--workloads] [--only TEXT]... [--update] [--clusters N] [--kubeconfig FILE]...
       [--minutes N]

Runs the upstream tests of test/upstream/passing.txt and fails when one does not pass, or when a test of the suite is
neither there nor, with a reason, in test/upstream/not-passing.md.

  --workloads        the tests of passing-with-workloads.txt instead, in logical clusters in which Kubernetes' own
                     controllers and scheduler run, and two nodes that kwok plays
  --only TEXT        only tests whose name contains TEXT, also those that are not listed as passing
  --update           try the others too, but for those below a heading "Needs ..."; add what passes to passing.txt
  --clusters N       logical clusters that share the work, at once (2)
  --kubeconfig FILE  use this cluster instead of starting kcp; several share the work
  --minutes N        of the whole run (20; 60 with --workloads)`

const { values } = parseArgs({
  options: {
    only: { type: 'string', multiple: true, default: [] },
    update: { type: 'boolean', default: false },
    clusters: { type: 'string', default: '2' },
    kubeconfig: { type: 'string', multiple: true, default: [] },
    minutes: { type: 'string' },
    workloads: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})
const clusters = Number(values.clusters)
const timeoutMs = Number(values.minutes ?? (values.workloads ? 60 : 20)) * 60_000
if (values.help || !(clusters >= 1 && clusters <= 16) || !(timeoutMs > 0)) {
  console.error(help)
  process.exit(values.help ? 0 : 2)
}

const { passing, withWorkloads, notPassing } = readLists()
/** The list of tests for this run. */
const expected = values.workloads ? withWorkloads : passing
const reachable = notPassing.filter(({ reason }) => !reason.startsWith('Needs ')).flatMap(({ names }) => names)
const names = namesToRun()
if (names.length === 0) {
  console.error(`no listed test's name contains ${values.only.map((text) => `"${text}"`).join(' or ')}`)
  process.exit(2)
}
const programs = await ensurePrograms(['e2e.test', 'kubectl'])
const started = performance.now()
const runs = await runAll()
report(runs)

function namesToRun(): readonly string[] {
  const { only } = values
  if (only.length > 0) {
    const all = [...passing, ...withWorkloads, ...notPassing.flatMap((section) => section.names)]
    return all.filter((name) => only.some((text) => name.includes(text)))
  }
  return values.update ? [...expected, ...reachable] : expected
}

async function runAll(): Promise<SuiteRun[]> {
  await using stack = new AsyncDisposableStack()
  const kubeconfigs = [...values.kubeconfig]
  if (kubeconfigs.length === 0) {
    const kcp = stack.use(await startInstance())
    for (let number = 1; number <= clusters; number++)
      kubeconfigs.push((await kcp.tenant(`upstream-${number}`)).kubeconfig)
  }
  for (const [index, kubeconfig] of kubeconfigs.entries())
    if (values.workloads) {
      const dir = join(repositoryRoot, '.run', 'upstream')
      stack.use(await startWorkloadControllers({ kubeconfig, label: `upstream-${index + 1}`, dir, nodes: 2 }))
    } else stack.use(await standInNode(kubeconfig))
  console.error(`${names.length} tests in ${kubeconfigs.length} logical clusters at once ...`)
  const abort = new AbortController()
  process.once('SIGINT', () => abort.abort(new Error('interrupted')))
  const shares = kubeconfigs.map((kubeconfig, index) => ({
    kubeconfig,
    label: String(index + 1),
    names: names.filter((_, position) => position % kubeconfigs.length === index),
  }))
  const shared = { program: programs['e2e.test'], kubectl: programs.kubectl, timeoutMs, signal: abort.signal }
  const suites = shares.filter((share) => share.names.length > 0).map((share) => runSuite({ ...share, ...shared }))
  // A failing suite aborts the others; all have ended before the logical clusters are deleted.
  for (const suite of suites) suite.catch((error: unknown) => abort.abort(error))
  await Promise.allSettled(suites)
  return await Promise.all(suites)
}

/** Prints the result of every test and sets the exit code. */
function report(suiteRuns: readonly SuiteRun[]): void {
  const results = suiteRuns.flatMap((run) => run.results)
  const passed = results.filter(({ state }) => state === 'passed')
  const bad = results.filter(({ state }) => state !== 'passed')
  const listed = new Set(expected)
  for (const result of bad) console.error(describe(result))
  const found = new Set(results.map(({ name }) => name))
  const missing = names.filter((name) => !found.has(name))
  const known = new Set([...passing, ...withWorkloads, ...notPassing.flatMap((section) => section.names)])
  const unlisted = [...new Set(suiteRuns.flatMap((run) => run.known))].filter((name) => !known.has(name))
  for (const name of missing) console.error(`no such test: ${name}`)
  for (const name of unlisted) console.error(`in no list: ${name}`)
  const anywhere = new Set([...passing, ...withWorkloads])
  const added = passed.map(({ name }) => name).filter((name) => !anywhere.has(name))
  if (values.update) addPassing(added, { workloads: values.workloads })
  for (const name of added) console.error(`${values.update ? 'added' : 'passes, but is not listed'}: ${name}`)
  const lost = bad.filter(({ name }) => listed.has(name))
  if (bad.length > 0) console.error(`logs: ${suiteRuns.map((run) => run.logFile).join(' ')}`)
  const seconds = ((performance.now() - started) / 1000).toFixed(0)
  const total = known.size + unlisted.length
  const after = anywhere.size + (values.update ? added.length : 0)
  console.log(
    `upstream: ${passed.length} passed, ${bad.length} did not (${lost.length} of them listed as passing) in ${seconds} s; ` +
      `${after} of ${total} listed as passing`,
  )
  process.exitCode = lost.length + missing.length + unlisted.length > 0 ? 1 : 0
}

function describe({ name, state, seconds, message }: UpstreamResult): string {
  const [first = ''] = message.split('\n\n')
  return `${state} after ${seconds.toFixed(0)} s: ${name}\n    ${first.slice(0, 2000).replaceAll('\n', '\n    ')}`
}
