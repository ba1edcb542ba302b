// LimitRanges: their bounds must not contradict each other.
import { randomUUID } from 'node:crypto'
import type { V1LimitRangeSpec } from '@kubernetes/client-node'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldRequired,
  qualifiedNameErrors,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import {
  containerResourceCauses,
  mayOvercommit,
  resourceNameCauses,
} from '#virtualapi/kinds/validation/resource-names.ts'

type Item = Data<V1LimitRangeSpec>['limits'][number]

const types = ['Pod', 'Container', 'PersistentVolumeClaim']
const members = ['max', 'min', 'default', 'defaultRequest'] as const
const nano = 1_000_000_000n

export const limitRangeRules: KindRules = {
  prepareForCreate({ metadata }) {
    // Upstream names those alone of all kinds.
    if (!metadata.name) metadata.name = randomUUID()
  },
  validate(object) {
    const spec = object['spec'] as Data<V1LimitRangeSpec>
    const limits = (spec.limits as Item[] | null) ?? []
    const seen = new Set<string>()
    return limits.flatMap((item, index) => {
      const at = `spec.limits[${index}]`
      const causes = typeCauses(`${at}.type`, item.type)
      if (seen.has(item.type)) causes.push(fieldDuplicate(`${at}.type`, item.type))
      seen.add(item.type)
      return [...causes, ...itemCauses(at, item)]
    })
  },
}

function typeCauses(path: string, type: string): StatusCause[] {
  const causes = qualifiedNameErrors(type).map((text) => fieldInvalid(path, type, text))
  if (causes.length > 0 || type.includes('/') || types.includes(type)) return causes
  return [fieldInvalid(path, type, 'must be a standard limit type or fully qualified')]
}

function itemCauses(path: string, item: Item): StatusCause[] {
  const { type, max = {}, min = {}, maxLimitRequestRatio: ratio = {} } = item
  const isPod = type === 'Pod'
  const nameCauses = isPod || type === 'Container' ? containerResourceCauses : resourceNameCauses
  const names = new Set<string>()
  const namesIn = (member: string, amounts: Readonly<Record<string, string>>): StatusCause[] =>
    Object.keys(amounts).flatMap((name) => {
      names.add(name)
      return nameCauses(`${path}.${member}[${name}]`, name)
    })
  const causes = members.flatMap((member) => {
    const amounts = item[member] ?? {}
    if (!isPod || member === 'max' || member === 'min') return namesIn(member, amounts)
    return Object.keys(amounts).length > 0
      ? [fieldForbidden(`${path}.${member}`, "may not be specified when `type` is 'Pod'")]
      : []
  })
  if (type === 'PersistentVolumeClaim' && max['storage'] === undefined && min['storage'] === undefined)
    causes.push(
      fieldRequired(`${path}.limits`, 'either minimum or maximum storage value is required, but neither was provided'),
    )
  causes.push(...namesIn('maxLimitRequestRatio', ratio))
  return [
    ...causes,
    ...[...names].flatMap((name) => [...boundCauses(path, item, name), ...ratioCauses(path, item, name)]),
  ]
}

/** Compares the bounds of one resource with each other. */
function boundCauses(path: string, item: Item, name: string): StatusCause[] {
  const isPod = item.type === 'Pod'
  const [min, max] = [item.min?.[name], item.max?.[name]]
  const limit = isPod ? undefined : item.default?.[name]
  const request = isPod ? undefined : item.defaultRequest?.[name]
  // [lower bound, its name, upper bound, its name, member of the error, value in the error]
  const pairs = [
    [min, 'min value', max, 'max value', 'min', min],
    [min, 'min value', request, 'default request value', 'defaultRequest', request],
    [request, 'default request value', max, 'max value', 'defaultRequest', request],
    [request, 'default request value', limit, 'default limit value', 'defaultRequest', request],
    [min, 'min value', limit, 'default value', 'default', min],
    [limit, 'default value', max, 'max value', 'default', max],
  ] as const
  const causes = pairs.flatMap(([low, lowWord, high, highWord, member, shown]) =>
    low !== undefined && high !== undefined && quantityOf(low).nanos > quantityOf(high).nanos
      ? [
          fieldInvalid(
            `${path}.${member}[${name}]`,
            shown ?? '',
            `${lowWord} ${low} is greater than ${highWord} ${high}`,
          ),
        ]
      : [],
  )
  if (mayOvercommit(name) || limit === undefined || request === undefined) return causes
  if (quantityOf(limit).nanos === quantityOf(request).nanos) return causes
  const detail = `default value ${limit} must equal to defaultRequest value ${request} in ${name}`
  return [...causes, fieldInvalid(`${path}.defaultRequest[${name}]`, request, detail)]
}

/** Validates maxLimitRequestRatio: at least 1, and at most max/min. */
function ratioCauses(path: string, { max, min, maxLimitRequestRatio }: Item, name: string): StatusCause[] {
  const [ratio, high, low] = [maxLimitRequestRatio?.[name], max?.[name], min?.[name]]
  if (ratio === undefined) return []
  const at = `${path}.maxLimitRequestRatio[${name}]`
  const { nanos } = quantityOf(ratio)
  const causes = nanos < nano ? [fieldInvalid(at, ratio, `ratio ${ratio} is less than 1`)] : []
  if (high === undefined || low === undefined) return causes
  const most = Number(quantityOf(high).nanos) / Number(quantityOf(low).nanos)
  return Number(nanos) / Number(nano) > most
    ? [...causes, fieldInvalid(at, ratio, `ratio ${ratio} is greater than max/min = ${most.toFixed(6)}`)]
    : causes
}
