// Conditions of a CertificateSigningRequest: once approved or denied, a request stays so.
import { timestamp } from '#async/index.ts'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'

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

/** Restores the Approved and Denied conditions of `old` if their number is unchanged: `status` must not change them. */
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

/** Validation errors of the conditions. A mistake that `old` already has is not reported. */
export function conditionCauses(path: string, object: KubeObject, old: KubeObject | undefined): StatusCause[] {
  const before = old === undefined ? [] : conditionsOf(old)
  const typesBefore = new Set(before.map(({ type }) => type))
  const allowed = {
    both: verdicts.every((type) => typesBefore.has(type)),
    empty: typesBefore.has(''),
    repeated: typesBefore.size < before.length,
  }
  const seen = new Set<string>()
  return conditionsOf(object).flatMap(({ type = '', status = '' }, index) => {
    const at = `${path}[${index}]`
    const statuses = onlyTrue.has(type) ? ['True'] : ['False', 'True', 'Unknown']
    const causes: StatusCause[] = []
    if (type === '' && !allowed.empty) causes.push(fieldRequired(`${at}.type`))
    if (status === '') causes.push(fieldRequired(`${at}.status`))
    else if (!statuses.includes(status)) causes.push(fieldNotSupported(`${at}.status`, status, statuses))
    const contrary = type === 'Approved' ? 'Denied' : type === 'Denied' ? 'Approved' : undefined
    if (!allowed.both && contrary !== undefined && seen.has(contrary))
      causes.push(fieldInvalid(path, type, 'Approved and Denied conditions are mutually exclusive'))
    if (seen.has(type) && !allowed.repeated) causes.push(fieldDuplicate(`${at}.type`, type))
    seen.add(type)
    return causes
  })
}

/** Errors for conditions that may not be added or removed. `subresource`: the one that is updated. */
export function conditionChangeCauses(
  path: string,
  object: KubeObject,
  old: KubeObject,
  subresource: string,
): StatusCause[] {
  const grown = (type: string): number => ofType(object, type).length - ofType(old, type).length
  const forbidden = (what: string, type: string): StatusCause =>
    fieldForbidden(path, `updates may not ${what} a condition of type ${goQuote(type)}`)
  return [
    ...[...onlyTrue].filter((type) => grown(type) < 0).map((type) => forbidden('remove', type)),
    ...(subresource === 'approval'
      ? []
      : verdicts.filter((type) => grown(type) > 0).map((type) => forbidden('add', type))),
  ]
}
