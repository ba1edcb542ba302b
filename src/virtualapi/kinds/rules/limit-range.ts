// LimitRanges: their bounds must not contradict each other.
import { randomUUID } from 'node:crypto'
import type { V1LimitRangeItem, V1LimitRangeSpec } from '@kubernetes/client-node'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { qualifiedName } from '#virtualapi/kinds/validation/basic-rules.ts'
import { containerResource, mayOvercommit, resourceName } from '#virtualapi/kinds/validation/resource-names.ts'
import {
  all,
  each,
  fields,
  firstOf,
  must,
  unique,
  validatingSpec,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1LimitRangeSpec>
type Item = Data<V1LimitRangeItem>

const types = ['Pod', 'Container', 'PersistentVolumeClaim']
const nano = 1_000_000_000n

const typeRule = firstOf<string>(
  qualifiedName,
  must((type) => type.includes('/') || types.includes(type), 'must be a standard limit type or fully qualified'),
)

const bounds: Rule<Item> = (item, report) => {
  const { type, max, min } = item
  const isPod = type === 'Pod'
  const nameRule = isPod || type === 'Container' ? containerResource : resourceName
  const names = new Set<string>()
  const takeNames = (member: 'max' | 'min' | 'default' | 'defaultRequest' | 'maxLimitRequestRatio'): void => {
    for (const name of Object.keys(item[member] ?? {})) {
      names.add(name)
      report.at(`${member}[${name}]`, nameRule, name)
    }
  }
  takeNames('max')
  takeNames('min')
  for (const member of ['default', 'defaultRequest'] as const)
    if (!isPod) takeNames(member)
    else if (Object.keys(item[member] ?? {}).length > 0)
      report.forbidden(member, "may not be specified when `type` is 'Pod'")
  if (type === 'PersistentVolumeClaim' && max?.['storage'] === undefined && min?.['storage'] === undefined)
    report.required('limits', 'either minimum or maximum storage value is required, but neither was provided')
  takeNames('maxLimitRequestRatio')
  for (const name of names) {
    checkBounds(item, name, report)
    checkRatio(item, name, report)
  }
}

const item = all<Item>(fields<Item>({ type: all<string>(typeRule, unique()) }), bounds)

export const limitRangeRules: KindRules = {
  prepareForCreate({ metadata }) {
    // As upstream, which names only objects of this kind.
    if (!metadata.name) metadata.name = randomUUID()
  },
  validate: validatingSpec(fields<Spec>({ limits: each(item) })),
}

/** Compares the bounds of one resource with each other. */
function checkBounds(item: Item, name: string, report: Report): void {
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
  for (const [low, lowWord, high, highWord, member, shown] of pairs)
    if (low !== undefined && high !== undefined && quantityOf(low).nanos > quantityOf(high).nanos)
      report.invalid(`${member}[${name}]`, shown ?? '', `${lowWord} ${low} is greater than ${highWord} ${high}`)
  if (mayOvercommit(name) || limit === undefined || request === undefined) return
  const detail = `default value ${limit} must equal to defaultRequest value ${request} in ${name}`
  if (quantityOf(limit).nanos !== quantityOf(request).nanos) report.invalid(`defaultRequest[${name}]`, request, detail)
}

/** Validates maxLimitRequestRatio: at least 1, and at most max/min. */
function checkRatio({ max, min, maxLimitRequestRatio }: Item, name: string, report: Report): void {
  const [ratio, high, low] = [maxLimitRequestRatio?.[name], max?.[name], min?.[name]]
  if (ratio === undefined) return
  const at = `maxLimitRequestRatio[${name}]`
  const { nanos } = quantityOf(ratio)
  if (nanos < nano) report.invalid(at, ratio, `ratio ${ratio} is less than 1`)
  if (high === undefined || low === undefined) return
  const most = Number(quantityOf(high).nanos) / Number(quantityOf(low).nanos)
  if (Number(nanos) / Number(nano) > most)
    report.invalid(at, ratio, `ratio ${ratio} is greater than max/min = ${most.toFixed(6)}`)
}
