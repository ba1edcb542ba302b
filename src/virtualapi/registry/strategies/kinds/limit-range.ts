// LimitRanges: bounds that do not contradict one another.
import type { V1LimitRangeSpec } from '@kubernetes/client-node'
import { fieldDuplicate, fieldForbidden, fieldInvalid, fieldRequired } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import { quantityOf } from '../typed/quantity.ts'
import { qualifiedName } from '../validation/values.ts'

type Item = Data<V1LimitRangeSpec>['limits'][number]

export const limitRangeRules: KindRules = {
  validate(object) {
    const spec = object['spec'] as Data<V1LimitRangeSpec>
    const limits = (spec.limits as Item[] | null) ?? []
    const types = new Set<string>()
    return limits.flatMap((item, index) => {
      const at = `spec.limits[${index}]`
      const causes = qualifiedName(`${at}.type`, item.type)
      if (types.has(item.type)) causes.push(fieldDuplicate(`${at}.type`, item.type))
      types.add(item.type)
      return [...causes, ...itemCauses(at, item)]
    })
  },
}

function itemCauses(path: string, item: Item): StatusCause[] {
  const { type, max = {}, min = {}, default: limit = {}, defaultRequest: request = {} } = item
  const causes: StatusCause[] = []
  if (type === 'Pod')
    for (const [member, amounts] of Object.entries({ default: limit, defaultRequest: request }))
      if (Object.keys(amounts).length > 0)
        causes.push(fieldForbidden(`${path}.${member}`, "may not be specified when `type` is 'Pod'"))
  if (type === 'PersistentVolumeClaim' && max['storage'] === undefined && min['storage'] === undefined)
    causes.push(
      fieldRequired(`${path}.limits`, 'either minimum or maximum storage value is required, but neither was provided'),
    )
  const names = new Set(
    [max, min, ...(type === 'Pod' ? [] : [limit, request])].flatMap((amounts) => Object.keys(amounts)),
  )
  for (const name of names) {
    // [low, its word, high, its word, the member that complains, the value it shows]
    const pairs = [
      [min[name], 'min value', max[name], 'max value', 'min', min[name]],
      [min[name], 'min value', request[name], 'default request value', 'defaultRequest', request[name]],
      [request[name], 'default request value', max[name], 'max value', 'defaultRequest', request[name]],
      [request[name], 'default request value', limit[name], 'default limit value', 'defaultRequest', request[name]],
      [min[name], 'min value', limit[name], 'default value', 'default', min[name]],
      [limit[name], 'default value', max[name], 'max value', 'default', max[name]],
    ] as const
    for (const [low, lowWord, high, highWord, member, shown] of pairs)
      if (low !== undefined && high !== undefined && quantityOf(low).nanos > quantityOf(high).nanos)
        causes.push(
          fieldInvalid(
            `${path}.${member}[${name}]`,
            shown ?? '',
            `${lowWord} ${low} is greater than ${highWord} ${high}`,
          ),
        )
  }
  return causes
}
