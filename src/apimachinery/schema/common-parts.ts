// The members' schemas of one place while they are combined, the report of what is lost there, and comparison of JSON.
import { isJsonObject, sortedMembers, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { WorkBudget } from '#apimachinery/work-budget/index.ts'

/** `dropped`: the field is not in the common schema; `narrowed`: the common schema accepts less than some members do. */
export type LossKind = 'dropped' | 'narrowed'

export interface SchemaLoss {
  /** The field, such as `.spec.ports[].name`; `*` stands for any key of a map. */
  readonly path: string
  readonly kind: LossKind
  /** What is lost, without the path: `is not known`. */
  readonly what: string
  /** The members that cause it: those that lack the field, or have the narrower rule. */
  readonly members: readonly string[]
}

/** The schema of one member at the place. */
export interface Part {
  readonly member: string
  readonly node: JsonObject
}

export interface Place {
  readonly path: string
  readonly depth: number
  /** The value is a whole object: apiVersion, kind and metadata are known without the schema. */
  readonly isResource: boolean
  /** The words of all rules here and above: names of fields that a rule may read. */
  readonly words: ReadonlySet<string>
  readonly losses: SchemaLoss[]
  readonly work: WorkBudget
}

export function reportLoss(
  { path, losses }: Pick<Place, 'path' | 'losses'>,
  kind: LossKind,
  what: string,
  members: readonly string[],
): void {
  if (members.length > 0) losses.push({ path: path === '' ? '.' : path, kind, what, members: [...new Set(members)] })
}

/** Reports that these parts narrow the others; nothing if all parts do the same. */
export function reportNarrowing(place: Place, what: string, by: readonly Part[], all: readonly Part[]): void {
  if (by.length < all.length) reportLoss(place, 'narrowed', what, namesOf(by))
}

export function namesOf(parts: readonly Part[]): string[] {
  return parts.map(({ member }) => member)
}

/** The same text for the same JSON, whatever the order of its fields. */
export function canonicalText(value: unknown): string {
  return JSON.stringify(value, (key, part: unknown) =>
    typeof part === 'bigint' ? `${part}n` : sortedMembers(key, part),
  )
}

export function isSameJson(a: JsonValue | undefined, b: JsonValue | undefined): boolean {
  if (a === b) return true
  if (Array.isArray(a))
    return Array.isArray(b) && a.length === b.length && a.every((item, index) => isSameJson(item, b[index]))
  if (!isJsonObject(a) || !isJsonObject(b)) return false
  const keys = Object.keys(a)
  return (
    keys.length === Object.keys(b).length && keys.every((key) => Object.hasOwn(b, key) && isSameJson(a[key], b[key]))
  )
}

/** Items without repetitions, in the order of their texts. */
export function sortedUnique<T>(items: readonly T[]): T[] {
  const byText = new Map(items.map((item) => [canonicalText(item), item]))
  return [...byText].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0)).map(([, item]) => item)
}

export function shortText(value: unknown): string {
  const text = canonicalText(value)
  return text.length > 60 ? `${text.slice(0, 60)} ...` : text
}
