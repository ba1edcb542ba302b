// The whole matrix: screens every scenario, doubles what is suspicious, repeats what would fail.
import { writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { accessScenarios } from './access-scenarios.ts'
import { crdScenarios } from './crd-scenarios.ts'
import { expressionScenarios } from './expression-scenarios.ts'
import { generatedScenarios } from './generated-scenarios.ts'
import { jsonOf, markdownOf, type Found } from './report.ts'
import { remoteScenarios } from './remote-scenarios.ts'
import { requestScenarios } from './request-scenarios.ts'
import { confirmedDoubling, fails, isSuspicious, pairOf, screen, type Scenario, type Verdict } from './scenario.ts'
import type { OpenApiDocument } from './schema.ts'
import { memoryGroup } from '#test/support/memory-group.ts'
import { startSubject, type Subject } from './subject.ts'

export interface MatrixOptions {
  /** No new scenario is begun after so long, milliseconds. */
  readonly timeMs: number
  /** One of so many scenarios; all by default. */
  readonly oneOf?: number
  /** Which one of them, from 0. */
  readonly piece?: number
  /** Only those whose title matches. */
  readonly only?: RegExp
  /** Pairs of the scenarios that are written by hand, instead of single ones. */
  readonly pairs?: boolean
  /** The memory that the server may have, MiB, as in a container. */
  readonly memoryMiB?: number
  readonly say?: (text: string) => void
}

/** Runs it against a server of its own. Resolves with all that was measured; judging it is up to the caller. */
export async function runMatrix({
  timeMs,
  oneOf = 1,
  piece = 0,
  only = /./,
  pairs = false,
  memoryMiB,
  say = () => undefined,
}: MatrixOptions): Promise<Found> {
  await using remote = await remoteScenarios()
  const group = memoryMiB === undefined ? undefined : memoryGroup(memoryMiB)
  if (typeof group === 'string') throw new Error(group)
  await using _group = group
  await using subject = await startSubject(remote.args, group?.env)
  const deadline = performance.now() + timeMs
  const documents = await servedDocuments(subject)
  const generated = generatedScenarios(documents)
  const written = [...accessScenarios, ...crdScenarios, ...expressionScenarios, ...requestScenarios]
  const byHand = [...written, ...remote.scenarios]
  const all = pairs ? pairsOf(byHand) : [...byHand, ...generated]
  const planned = all.filter(({ title }) => only.test(title))
  const chosen = planned.filter((_, i) => i % oneOf === piece)
  const screened: Verdict[] = []
  const doubled: Verdict[] = []
  const unprepared: string[] = []
  let scenarios = 0
  for (const scenario of chosen) {
    if (performance.now() > deadline) break
    scenarios++
    const found = await screen(subject, scenario)
    screened.push(...found)
    if (found.length === 0) unprepared.push(`${scenario.title}: ${await whyUnprepared(subject, scenario)}`)
    if (found.some(isSuspicious)) {
      const confirmed = await confirmedDoubling(subject, scenario)
      for (const verdict of confirmed.filter(fails)) say(failureText(verdict))
      doubled.push(...confirmed)
    }
  }
  const waits = subject.waits().toSorted((a, b) => a - b)
  const quantile = (q: number): number => waits[Math.floor(q * waits.length)] ?? 0
  const requests = [...screened, ...doubled].reduce((sum, { points }) => sum + points.length, 0)
  const neighbour = { p50Ms: quantile(0.5), p99Ms: quantile(0.99) }
  return { scenarios, planned: planned.length, unprepared, requests, screened, doubled, neighbour }
}

/** Each with the one that is a third of the list further on: another topic. */
function pairsOf(scenarios: readonly Scenario[]): Scenario[] {
  const step = Math.ceil(scenarios.length / 3)
  return scenarios.flatMap((first, i) => {
    const second = scenarios[(i + step) % scenarios.length]
    return second === undefined ? [] : [pairOf(first, second)]
  })
}

/** What the server answered to what a scenario needs, at its smallest size. */
async function whyUnprepared(subject: Subject, { before, after, from = 64 }: Scenario): Promise<string> {
  const refusal = await subject.prepare(before?.(from) ?? [])
  await subject.prepare(after?.(from) ?? [])
  return refusal ?? 'at larger sizes only'
}

/** One line: what grew, how fast, who waited. */
export function failureText({ scenario, step, points, exponent, worstNeighbourMs }: Verdict): string {
  const costs = points.map(
    ({ n, cpuMs, mainMs, status, hasDied, neighbourMs }) =>
      `${n}: ${cpuMs.toFixed(0)}/${mainMs.toFixed(0)}/${neighbourMs.toFixed(0)} (${hasDied ? 'died' : status})`,
  )
  const growth = exponent === undefined ? '' : `, n^${exponent.toFixed(2)}`
  return `${scenario}: ${step}${growth}, neighbour ${worstNeighbourMs.toFixed(0)} ms; CPU all/main, neighbour ms: ${costs.join(', ')}`
}

/**
 * Writes both forms of what was found below the directory for temporary files; returns the path of the readable one.
 */
export function keepResults(found: Found): string {
  const file = join(process.env['KCP_AMPLIFIERS_DIR'] ?? tmpdir(), 'kcp-amplifiers')
  writeFileSync(`${file}.json`, jsonOf(found))
  writeFileSync(`${file}.md`, markdownOf(found))
  return `${file}.md`
}

async function servedDocuments({ hostile }: Subject): Promise<OpenApiDocument[]> {
  const index = await hostile.http.request('GET', `${hostile.base}/openapi/v3`)
  const paths = Object.keys(index.json()['paths'] as object)
  const documents = paths.map(async (path) => {
    const { text } = await hostile.http.request('GET', `${hostile.base}/openapi/v3/${path}`)
    return JSON.parse(text) as OpenApiDocument
  })
  return Promise.all(documents)
}
