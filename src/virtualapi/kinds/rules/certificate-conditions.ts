// Conditions of a CertificateSigningRequest: once approved or denied, a request stays so.
import { timestamp } from '#async/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { each, oneOf, required, type Rule } from '#virtualapi/kinds/validation/vocabulary.ts'

export interface RequestCondition {
  readonly type: string
  readonly status: string
  lastUpdateTime?: string | null
  lastTransitionTime?: string | null
}

export interface RequestStatus {
  readonly conditions?: RequestCondition[]
  readonly certificate?: string
}

const verdicts = ['Approved', 'Denied'] as const
const onlyTrue: ReadonlySet<string> = new Set([...verdicts, 'Failed'])

export function conditionsOf({ status }: KubeObject): RequestCondition[] {
  return (status as RequestStatus | undefined)?.conditions ?? []
}

function ofType(object: KubeObject, type: string): RequestCondition[] {
  return conditionsOf(object).filter((condition) => condition.type === type)
}

/**
 * Restores the Approved and Denied conditions of `old`, because the subresource `status` must not change them. If their
 * number has changed, they stay as they are: conditionChange then refuses the write.
 */
export function restoreApprovalConditions(object: KubeObject, old: KubeObject): void {
  const conditions = conditionsOf(object)
  for (const type of verdicts) {
    const before = ofType(old, type)
    if (before.length !== ofType(object, type).length) continue
    let next = 0
    for (const [index, condition] of conditions.entries())
      if (condition.type === type) conditions[index] = structuredClone(before[next++] ?? condition)
  }
}

/** Sets missing timestamps of conditions. */
export function stampConditions(object: KubeObject, old: KubeObject, now: number): void {
  const time = timestamp(now)
  const since = new Map<string, string>()
  for (const { type, status, lastTransitionTime } of conditionsOf(old)) {
    const key = JSON.stringify([type, status])
    if (lastTransitionTime && !since.has(key)) since.set(key, lastTransitionTime)
  }
  for (const condition of conditionsOf(object)) {
    condition.lastUpdateTime ||= time
    condition.lastTransitionTime ||= since.get(JSON.stringify([condition.type, condition.status])) ?? time
  }
}

const onlyTrueStatus = required(oneOf(['True']))
const anyStatus = required(oneOf(['False', 'True', 'Unknown']))

/** The mistakes that conditions may keep because the stored object already has them. */
interface Leniency {
  readonly both: boolean
  readonly empty: boolean
  readonly repeated: boolean
}

const condition: Rule<RequestCondition, Leniency & { readonly seen: Set<string> }> = (one, report, allowed) => {
  const { type = '', status = '' } = one as Partial<RequestCondition>
  const { seen } = allowed
  if (type === '' && !allowed.empty) report.required('type')
  report.at('status', onlyTrue.has(type) ? onlyTrueStatus : anyStatus, status)
  const contrary = type === 'Approved' ? 'Denied' : type === 'Denied' ? 'Approved' : undefined
  if (!allowed.both && contrary !== undefined && seen.has(contrary))
    report.invalid('..', type, 'Approved and Denied conditions are mutually exclusive')
  if (seen.has(type) && !allowed.repeated) report.duplicate('type', type)
  seen.add(type)
}
const list = each(condition)

/** The conditions of the request. */
export const requestConditions: Rule<KubeObject, KubeObject | undefined> = (object, report, old) => {
  const before = old === undefined ? [] : conditionsOf(old)
  const types = new Set(before.map(({ type }) => type))
  report.at('status.conditions', list, conditionsOf(object), {
    both: verdicts.every((type) => types.has(type)),
    empty: types.has(''),
    repeated: types.size < before.length,
    seen: new Set<string>(),
  })
}

/** Errors for conditions that may not be added or removed through this subresource. */
export function conditionChange(subresource: string): Rule<KubeObject, KubeObject> {
  return (object, report, old) => {
    const grown = (type: string): number => ofType(object, type).length - ofType(old, type).length
    const refuse = (what: string, type: string): void =>
      report.forbidden('status.conditions', `updates may not ${what} a condition of type ${goQuote(type)}`)
    for (const type of onlyTrue) if (grown(type) < 0) refuse('remove', type)
    if (subresource !== 'approval') for (const type of verdicts) if (grown(type) > 0) refuse('add', type)
  }
}
