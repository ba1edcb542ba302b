// Sends the requests of a story and measures what they cost the server and its other tenants.
import { existsSync, readFileSync } from 'node:fs'
import { untilIdle } from '#test/long/amplifiers/measured-process.ts'
import { ServerUsage } from '#test/long/amplifiers/server-usage.ts'
import type { Subject } from '#test/long/amplifiers/subject.ts'
import type { Asked, Story } from './stories.ts'

export interface Told {
  readonly title: string
  readonly requests: number
  /** How many requests had which status. */
  readonly statuses: ReadonlyMap<number, number>
  /** What was answered otherwise than expected. */
  readonly unexpected: readonly string[]
  readonly wallMs: number
  /** Of all threads, milliseconds. */
  readonly cpuMs: number
  readonly slowestMs: number
  /** Processor time of the longest pass of the event loop, milliseconds. */
  readonly longestPassMs: number
  /** What the other tenant waited meanwhile for an answer, without the time that other programs took, milliseconds. */
  readonly neighbourMs: { readonly p50: number; readonly p99: number; readonly worst: number }
  readonly residentMiB: { readonly before: number; readonly after: number }
}

interface Pass {
  readonly at: number
  readonly ms: number
}

/** The start of an answer that is shown. */
const shownCharacters = 300

/** Tells it to the hostile tenant of `subject`; `passFile` is what pass-probe.ts writes. */
export async function tellStory(subject: Subject, story: Story, passFile: string): Promise<Told> {
  const began = performance.timeOrigin + performance.now()
  const usage = new ServerUsage(subject.pid)
  const before = usage.now()
  const statuses = new Map<number, number>()
  const unexpected: string[] = []
  let slowestMs = 0
  await eachOf(story, async (asked) => {
    const sent = performance.now()
    const { status, text } = await subject.send(asked)
    slowestMs = Math.max(slowestMs, performance.now() - sent)
    statuses.set(status, (statuses.get(status) ?? 0) + 1)
    if (!asked.expected.includes(status)) unexpected.push(shown(asked, status, text))
  })
  const ended = performance.timeOrigin + performance.now()
  const after = await untilIdle(usage)
  const waits = subject.waits(began, ended).toSorted((a, b) => a - b)
  const quantile = (q: number): number => waits[Math.min(waits.length - 1, Math.floor(q * waits.length))] ?? 0
  return {
    ...{ title: story.title, requests: story.requests.length, statuses, unexpected },
    ...{ wallMs: ended - began, cpuMs: after.allMs - before.allMs, slowestMs },
    longestPassMs: Math.max(0, ...passes(passFile).flatMap(({ at, ms }) => (at >= began ? ms : []))),
    neighbourMs: { p50: quantile(0.5), p99: quantile(0.99), worst: waits.at(-1) ?? 0 },
    residentMiB: { before: before.residentMiB, after: after.residentMiB },
  }
}

function shown({ method, path, body }: Asked, status: number, text: string): string {
  const asked = JSON.stringify(body ?? '').slice(0, shownCharacters)
  return `${method} ${path} ${asked}: ${status} ${text.slice(0, shownCharacters)}`
}

async function eachOf({ requests, atOnce = 1 }: Story, send: (asked: Asked) => Promise<void>): Promise<void> {
  const rest = requests.values()
  const client = async (): Promise<void> => {
    for (const asked of rest) await send(asked)
  }
  await Promise.all(Array.from({ length: atOnce }, client))
}

function passes(file: string): Pass[] {
  if (!existsSync(file)) return []
  const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
  return lines.map((line) => JSON.parse(line) as Pass)
}

const ms = (value: number): string => value.toFixed(value < 10 ? 1 : 0)

/** One row of a table in Markdown. */
export function rowOf({ title, requests, statuses, ...told }: Told): string {
  const codes = [...statuses].toSorted(([a], [b]) => a - b).map(([status, count]) => `${count} x ${status}`)
  const { p50, p99, worst } = told.neighbourMs
  const { before, after } = told.residentMiB
  const cells = [
    ...[title, String(requests), codes.join(', '), `${(told.wallMs / 1000).toFixed(1)} s`],
    ...[`${(told.cpuMs / 1000).toFixed(1)} s`, `${ms(told.slowestMs)} ms`, `${ms(told.longestPassMs)} ms`],
    ...[`${ms(p50)} / ${ms(p99)} / ${ms(worst)} ms`, `${before.toFixed(0)} to ${after.toFixed(0)} MiB`],
  ]
  return `| ${cells.join(' | ')} |`
}
