// What the explanation of an object consists of. Findings are plain data: terminals and browsers render them.
import type { Condition, DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'

/** The object that a finding is about. */
export interface Subject {
  /** The logical cluster; absent for objects of the installation, such as a MemberCluster. */
  readonly cluster?: string
  readonly kind: string
  readonly namespace?: string
  readonly name: string
}

/**
 * `wrong`: needs somebody to act. `waits`: goes on by itself. `well`: as it should be. `note`: tells what happened, such
 * as the last move.
 */
export type FindingState = 'wrong' | 'waits' | 'well' | 'note'

export interface Finding {
  readonly subject: Subject
  readonly state: FindingState
  /** What was seen, as a sentence without a full stop. */
  readonly what: string
  /** The reason in a condition, an Event or a copy; docs/reference/reasons.md has an entry for reasons of kcp. */
  readonly reason?: string
  /** RFC 3339: since when it is so. */
  readonly since?: string
  /** Completes "waits for". */
  readonly waitsFor?: string
  /** RFC 3339: when the wait ends without success. */
  readonly until?: string
  /** What happens at `until`. */
  readonly then?: string
  /** What to do, as an imperative. */
  readonly todo?: string
}

/** An object as a list or a watch has it. */
export type SeenObject = DeepReadonly<KubeObject>

/** The subject of a finding about this object. */
export function subjectOf({ kind, metadata }: SeenObject, cluster?: string): Subject {
  const { name = '', namespace } = metadata
  return { kind, name, ...(cluster !== undefined && { cluster }), ...(namespace !== undefined && { namespace }) }
}

/** The findings, those that need somebody first; otherwise in their order. */
export function byUrgency(findings: readonly Finding[]): Finding[] {
  return states.flatMap((state) => findings.filter((finding) => finding.state === state))
}

/** The findings, where several say the same of objects of one namespace only once, with their number. */
export function withoutRepeats(findings: readonly Finding[]): Finding[] {
  const groups = new Map<string, { readonly first: Finding; count: number }>()
  for (const finding of findings) {
    const { subject, state, what } = finding
    const key = JSON.stringify([subject.cluster, subject.kind, subject.namespace, state, what])
    const group = groups.get(key)
    if (group === undefined) groups.set(key, { first: finding, count: 1 })
    else group.count++
  }
  return [...groups.values()].map(({ first, count }) =>
    count === 1
      ? first
      : {
          ...first,
          what: `${first.what}; the same of ${count - 1} other ${first.subject.kind}${count > 2 ? 's' : ''}`,
        },
  )
}

const states: readonly FindingState[] = ['wrong', 'waits', 'well', 'note']

/** The conditions in the status of an object; entries that are not conditions are left out. */
export function conditionsOf(object: SeenObject): readonly DeepReadonly<Condition>[] {
  const { conditions } = recordOf(object['status'])
  const list: readonly unknown[] = Array.isArray(conditions) ? conditions : []
  return list.flatMap((one) => {
    const { type, status, reason = '', message = '', lastTransitionTime = '' } = recordOf(one)
    if (typeof type !== 'string' || typeof status !== 'string') return []
    return [{ type, status, reason, message, lastTransitionTime } as Condition]
  })
}

/** The condition of this type, if the object has it. */
export function conditionOf(object: SeenObject | undefined, type: string): DeepReadonly<Condition> | undefined {
  return object === undefined ? undefined : conditionsOf(object).find((condition) => condition.type === type)
}

/** A value as a map of fields; empty if the value is something else. */
export function recordOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {}
}

/** A value as a list; empty if the value is something else. */
export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : []
}

/** A value as text; empty if the value is something else. */
export function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}

/** A value as a number; 0 if the value is something else. */
export function countOf(value: unknown): number {
  return typeof value === 'number' ? value : 0
}

/** `{ since }` if the time is known. */
export function sinceOf(time: string | undefined): { readonly since?: string } {
  return time === undefined || time === '' ? {} : { since: time }
}

/** `{ todo }` if there is one. */
export function todoIf(todo: string | undefined): { readonly todo?: string } {
  return todo === undefined ? {} : { todo }
}
