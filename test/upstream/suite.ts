// Runs the upstream suite against one cluster.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { repositoryRoot, runCommand } from '#test/support/index.ts'
import { parseReport, suiteFailures, type UpstreamResult } from './report.ts'
import { isInScope } from './scope.ts'

export interface SuiteOptions {
  readonly program: string
  readonly kubectl: string
  readonly kubeconfig: string
  /** Complete names. */
  readonly names: readonly string[]
  /** Used in the names of the log and the report. */
  readonly label: string
  /** Limit of the whole run; unfinished tests then fail. */
  readonly timeoutMs: number
  readonly signal: AbortSignal
}

export interface SuiteRun {
  readonly results: readonly UpstreamResult[]
  /** Every test in scope that the program knows. */
  readonly known: readonly string[]
  readonly logFile: string
}

/** Runs the named tests one after the other. Throws when the suite did not start or left no report. */
export async function runSuite(options: SuiteOptions): Promise<SuiteRun> {
  const { program, kubectl, kubeconfig, names, label, timeoutMs, signal } = options
  const dir = join(repositoryRoot, '.run', 'upstream')
  mkdirSync(dir, { recursive: true })
  const reportFile = join(dir, `${label}.json`)
  const logFile = join(dir, `${label}.log`)
  const args = [
    `--kubeconfig=${kubeconfig}`,
    `--kubectl-path=${kubectl}`,
    '--provider=local',
    '--num-nodes=1',
    '--allowed-not-ready-nodes=-1',
    '--minStartupPods=0',
    '--disable-log-dump',
    '--ginkgo.no-color',
    `--ginkgo.focus=${focusOf(names)}`,
    `--ginkgo.timeout=${Math.ceil(timeoutMs / 1000)}s`,
    `--ginkgo.json-report=${reportFile}`,
  ]
  writeFileSync(reportFile, '')
  const { stdout, stderr } = await runCommand('nice', ['-n', '5', program, ...args], {
    cwd: dir,
    // Not a directory, so nothing is cached: kubectl caches discovery by host and port, which logical clusters may have
    // in common, and `kubectl explain SHORTNAME` does not look for a kind that is newer than its cache.
    env: { ...noCluster, KUBECACHEDIR: '/dev/null/kubectl' },
    expectCode: 'any',
    timeoutMs: timeoutMs + 60_000,
    signal,
  })
  writeFileSync(logFile, stdout + stderr)
  const report = readFileSync(reportFile, 'utf8')
  if (report === '') throw new Error(`the upstream suite left no report; see ${logFile}`)
  const [problem] = suiteFailures(report)
  if (problem !== undefined) throw new Error(`the upstream suite could not begin: ${problem}; see ${logFile}`)
  const all = parseReport(report)
  const asked = new Set(names)
  return {
    results: all.filter(({ name }) => asked.has(name)),
    known: all.map(({ name }) => name).filter(isInScope),
    logFile,
  }
}

const noCluster = { KUBECONFIG: undefined, KUBERNETES_SERVICE_HOST: undefined, KUBERNETES_SERVICE_PORT: undefined }

/** A regular expression (Go's) that matches exactly these names. */
export function focusOf(names: readonly string[]): string {
  return `(${names.map((name) => name.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&')).join('|')})$`
}
