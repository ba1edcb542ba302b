// Reads the results of the upstream suite from Ginkgo's JSON report.
import { isRecord } from '#test/integration/json.ts'

export interface UpstreamResult {
  /** All texts down to the leaf, as `--ginkgo.focus` matches them. */
  readonly name: string
  /** `passed`, or another result: failed, panicked, timedout, skipped ... */
  readonly state: string
  readonly seconds: number
  /** The reason of a failure; empty otherwise. */
  readonly message: string
}

/** The tests of a report; those outside the focus are `skipped`. Throws if the text is not a report. */
export function parseReport(text: string): UpstreamResult[] {
  const suites: unknown = JSON.parse(text)
  if (!Array.isArray(suites)) throw new Error('this is no Ginkgo JSON report: not an array of suites')
  return suites.flatMap((suite: unknown) => recordsOf(suite, 'SpecReports').filter(isTest).map(resultOf))
}

/** Why the suite could not start; empty if it did. */
export function suiteFailures(text: string): string[] {
  const suites: unknown = JSON.parse(text)
  if (!Array.isArray(suites)) return []
  return suites
    .flatMap((suite: unknown) => recordsOf(suite, 'SpecReports'))
    .filter((spec) => !isTest(spec) && spec['State'] !== 'passed')
    .map((spec) => messageOf(spec))
    .filter((message) => message !== '')
}

const isTest = (spec: Record<string, unknown>): boolean => spec['LeafNodeType'] === 'It'

function resultOf(spec: Record<string, unknown>): UpstreamResult {
  const containers = spec['ContainerHierarchyTexts']
  const texts = [...(Array.isArray(containers) ? (containers as unknown[]) : []), spec['LeafNodeText']]
  return {
    name: texts.filter((part) => typeof part === 'string' && part !== '').join(' '),
    state: typeof spec['State'] === 'string' ? spec['State'] : 'unknown',
    seconds: typeof spec['RunTime'] === 'number' ? spec['RunTime'] / 1e9 : 0,
    message: messageOf(spec),
  }
}

function messageOf(spec: Record<string, unknown>): string {
  const failure = spec['Failure']
  return isRecord(failure) && typeof failure['Message'] === 'string' ? failure['Message'] : ''
}

function recordsOf(value: unknown, key: string): Record<string, unknown>[] {
  const inner = isRecord(value) ? value[key] : undefined
  return Array.isArray(inner) ? inner.filter(isRecord) : []
}
