// Results of earlier runs of scripts/conformance.ts, so that a run may be cut into pieces: one JSON text per line.
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { isRecord } from '#test/integration/json.ts'
import type { RoundName } from './lists.ts'
import type { UpstreamResult } from './report.ts'

export class KeptResults {
  readonly #file: string
  readonly #byKey = new Map<string, UpstreamResult>()

  /** Reads the file if it is there. A last line that a killed run cut off is ignored. */
  constructor(file: string) {
    this.#file = file
    if (!existsSync(file)) return
    for (const line of readFileSync(file, 'utf8').split('\n')) this.#read(line)
  }

  has(round: RoundName, name: string): boolean {
    return this.#byKey.has(keyOf(round, name))
  }

  /** The results of these tests in a round, without those that have none yet. */
  of(round: RoundName, names: readonly string[]): UpstreamResult[] {
    return names.flatMap((name) => this.#byKey.get(keyOf(round, name)) ?? [])
  }

  /** Durable when it returns. */
  add(round: RoundName, results: readonly UpstreamResult[]): void {
    for (const result of results) this.#byKey.set(keyOf(round, result.name), result)
    mkdirSync(dirname(this.#file), { recursive: true })
    appendFileSync(this.#file, results.map((result) => `${JSON.stringify({ round, ...result })}\n`).join(''))
  }

  #read(line: string): void {
    if (!line.endsWith('}')) return
    const value: unknown = JSON.parse(line)
    if (!isRecord(value)) return
    const { round, name, state, seconds, message } = value
    if (typeof round !== 'string' || typeof name !== 'string' || typeof state !== 'string') return
    this.#byKey.set(keyOf(round, name), {
      ...{ name, state },
      seconds: typeof seconds === 'number' ? seconds : 0,
      message: typeof message === 'string' ? message : '',
    })
  }
}

const keyOf = (round: string, name: string): string => `${round} ${name}`

/**
 * Whether a test has ended by itself: the end of its suite (Ginkgo's --timeout) leaves tests `timedout`, `interrupted`,
 * or `skipped` without a reason, which then says nothing about us.
 */
export function hasEnded({ state, message }: UpstreamResult): boolean {
  return state === 'passed' || state === 'failed' || state === 'panicked' || (state === 'skipped' && message !== '')
}
