// The findings of a run, as text for people and as JSON for comparison with the next run.
import { fails, type Verdict } from './scenario.ts'

export interface Found {
  readonly scenarios: number
  readonly planned: number
  /** Titles of those of which what they need could not be made, and why. */
  readonly unprepared: readonly string[]
  readonly requests: number
  readonly screened: readonly Verdict[]
  /** Those that were doubled up to what the server admits. */
  readonly doubled: readonly Verdict[]
  readonly neighbour: { readonly p50Ms: number; readonly p99Ms: number }
}

const ms = (value: number): string => value.toFixed(value < 10 ? 1 : 0)

/** A table in Markdown, the worst first. */
export function markdownOf({ scenarios, planned, unprepared, requests, screened, doubled, neighbour }: Found): string {
  const worst = [...doubled, ...screened].toSorted((a, b) => weight(b) - weight(a)).slice(0, 100)
  return [
    `${scenarios} of ${planned} scenarios, ${requests} requests measured; ${doubled.length} steps doubled; ${unprepared.length} could not be prepared.`,
    `The neighbour's requests: p50 ${ms(neighbour.p50Ms)} ms, p99 ${ms(neighbour.p99Ms)} ms.`,
    '',
    ...unprepared.map((one) => `- not prepared: ${one}`),
    '',
    '| input | step | n | status | CPU ms | main thread ms | wall ms | exponent | neighbour ms | RSS MiB | fails |',
    '|---|---|---|---|---|---|---|---|---|---|---|',
    ...worst.map(rowOf),
    '',
  ].join('\n')
}

/** The file of a run: all of it. */
export function jsonOf(found: Found): string {
  return JSON.stringify(found, null, 1)
}

function rowOf(verdict: Verdict): string {
  const { scenario, step, points, exponent, worstNeighbourMs } = verdict
  const last = mostOf(verdict)
  const cells = [
    ...[scenario, step, points.map(({ n, cpuMs }) => `${n}: ${ms(cpuMs)}`).join(', ')],
    ...[String(last?.status), ms(last?.cpuMs ?? 0), ms(last?.mainMs ?? 0), ms(last?.wallMs ?? 0)],
    ...[exponent?.toFixed(2) ?? '-', ms(worstNeighbourMs), ms(last?.residentMiB ?? 0), fails(verdict) ? 'yes' : ''],
  ]
  return `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`
}

const mostOf = ({ points }: Verdict) => points.toSorted((a, b) => b.cpuMs - a.cpuMs)[0]
const weight = (verdict: Verdict): number => (mostOf(verdict)?.cpuMs ?? 0) + (fails(verdict) ? 1e6 : 0)
