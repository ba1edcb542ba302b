// The last moves of a workload, as its annotation has them.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject, type DeepReadonly, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { historyAnnotation } from './sync-contract.ts'

type Annotated = Pick<DeepReadonly<KubeObject>, 'metadata'>

export interface PastMove {
  /** When it began, in Unix milliseconds. */
  readonly timeMs: number
  readonly from: readonly string[]
  readonly to: readonly string[]
  readonly cause: string
  readonly message: string
}

/** The entries, the newest first; none if the annotation is absent or not valid. */
export function placementHistory({ metadata }: Annotated): JsonObject[] {
  try {
    const value: unknown = parseJsonText(metadata.annotations?.[historyAnnotation] ?? '[]')
    return Array.isArray(value) ? value.filter(isJsonObject) : []
  } catch {
    return []
  }
}

/** The move that began last; undefined if none is known. */
export function newestMove(workload: Annotated): PastMove | undefined {
  const [entry] = placementHistory(workload)
  if (entry === undefined) return undefined
  const timeMs = Date.parse(textOf(entry['time']))
  if (Number.isNaN(timeMs)) return undefined
  const { from, to, cause, message } = entry
  return { timeMs, from: namesOf(from), to: namesOf(to), cause: textOf(cause), message: textOf(message) }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

function namesOf(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((name) => typeof name === 'string') : []
}
