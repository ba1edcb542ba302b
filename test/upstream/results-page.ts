// The page docs/reference/conformance.md: the result of every test in scope.
import { isSkipped, type Lists } from './lists.ts'
import type { UpstreamResult } from './report.ts'

interface Row {
  readonly name: string
  readonly result: 'pass' | 'fail' | 'skip'
  readonly remark: string
}

/**
 * Markdown with one row per listed test. A listed test counts as passing unless `results` says otherwise; the others
 * are skipped if the heading of their section in not-passing.md begins with "Needs" or "Skipped", and fail if not.
 */
export function resultsPage(lists: Lists, results: readonly UpstreamResult[]): string {
  const rows = rowsOf(lists, new Map(results.map((result) => [result.name, result])))
  const groups = [...new Set(rows.map(groupOf))].sort()
  return [
    ...introduction,
    ...countsOf(rows),
    ...groups.flatMap((group) => ['', `## ${group}`, '', ...tableOf(rows.filter((row) => groupOf(row) === group))]),
    '',
  ].join('\n')
}

const introduction = [
  '# Results of the Kubernetes end-to-end tests',
  '',
  'Written by `make conformance`; not to be edited. Kubernetes 1.34.3: all tests marked [Conformance], and every other test of',
  '[sig-api-machinery], [sig-auth], [sig-cli] and [sig-instrumentation]. A test passes when it does in two logical clusters at',
  'once. "with workloads": Kubernetes\' own workload controllers and scheduler run beside the logical cluster, and kwok',
  'simulates two nodes; "with nodes": beside these controllers, a real node runs the pods; "in a member": a member cluster with',
  'a real node runs the pods of both logical clusters. The reasons of the others: `test/upstream/not-passing.md`.',
  '',
]

const countsOf = (rows: readonly Row[]): string[] => [
  '| | pass | fail | skip |',
  '|---|---|---|---|',
  countLine('[Conformance]', rows.filter(isConformance)),
  countLine(
    'others',
    rows.filter((row) => !isConformance(row)),
  ),
  countLine('all', rows),
]

function countLine(title: string, rows: readonly Row[]): string {
  const count = (result: Row['result']): number => rows.filter((row) => row.result === result).length
  return `| ${title} | ${count('pass')} | ${count('fail')} | ${count('skip')} |`
}

function rowsOf(
  { passing, withWorkloads, withNodes, inMembers, notPassing }: Lists,
  results: ReadonlyMap<string, UpstreamResult>,
): Row[] {
  const listed = (remark: string) => (name: string) => rowOf(name, remark, results.get(name))
  const rows = [
    ...passing.map(listed('')),
    ...withWorkloads.map(listed('with workloads')),
    ...withNodes.map(listed('with nodes')),
    ...inMembers.map(listed('in a member')),
  ]
  for (const section of notPassing)
    for (const name of section.names)
      rows.push({ name, result: isSkipped(section) ? 'skip' : 'fail', remark: section.reason })
  return rows.sort((a, b) => (a.name < b.name ? -1 : 1))
}

function rowOf(name: string, remark: string, result: UpstreamResult | undefined): Row {
  if (result === undefined || result.state === 'passed') return { name, result: 'pass', remark }
  const [first = ''] = result.message.split('\n')
  return {
    name,
    result: 'fail',
    remark: [remark, result.state, first.slice(0, 200)].filter((part) => part !== '').join(': '),
  }
}

const tableOf = (rows: readonly Row[]): string[] => [
  '| test | result | |',
  '|---|---|---|',
  ...rows.map(({ name, result, remark }) => `| ${escaped(withoutGroup(name))} | ${result} | ${escaped(remark)} |`),
]

const isConformance = ({ name }: Row): boolean => name.includes('[Conformance]')
const groupOf = ({ name }: Row): string => name.split(' ', 1)[0] ?? ''
const withoutGroup = (name: string): string => name.slice(name.indexOf(' ') + 1)
/** Without Markdown's special characters, of which names have a few. */
const escaped = (text: string): string => text.replaceAll(/[\\|<*_`]/g, '\\$&')
