// Validation of the device requests of a ResourceClaim or ResourceClaimTemplate.
import type {
  V1DeviceClaim,
  V1DeviceClaimConfiguration,
  V1DeviceConstraint,
  V1DeviceRequest,
  V1DeviceSelector,
  V1DeviceSubRequest,
  V1DeviceToleration,
  V1ExactDeviceRequest,
} from '@kubernetes/client-node'
import { byteLength } from '#apimachinery/field/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, labelValue, objectName, qualifiedName } from './basic-rules.ts'
import { deviceConfig, type Stored } from './device-config.ts'
import { deviceExpressionCauses } from './device-expression.ts'
import { deviceFullName, keyedList, requestReferences, type RequestNames } from './device-names.ts'
import { all, each, fields, given, oneOf, optional, type Rule } from './vocabulary.ts'

export type DeviceClaim = Data<V1DeviceClaim>
type Request = Data<V1DeviceRequest>
type Wanted = Data<V1DeviceSubRequest> | Data<V1ExactDeviceRequest>
type Context = Stored & RequestNames

const longestExpression = 10 * 1024

const selector: Rule<Data<V1DeviceSelector>, Stored> = ({ cel }, report, { stored }) => {
  if (cel === undefined) report.required('cel')
  else if (byteLength(cel.expression) > longestExpression) report.tooLong('cel.expression', longestExpression)
  else report.add(...deviceExpressionCauses(report.path('cel.expression'), cel.expression, { stored }))
}
export const deviceSelectors = keyedList(selector, { most: 32 })

const toleration = all<Data<V1DeviceToleration>>(
  fields({ key: given(qualifiedName) }),
  ({ operator = '', value = '' }, report) => {
    if (operator === 'Equal') report.at('value', labelValue, value)
    else if (operator !== 'Exists') report.notSupported('operator', operator, ['Equal', 'Exists'])
    else if (value !== '') report.invalid('value', value, 'must be empty for operator `Exists`')
  },
  fields({ effect: given(oneOf(['NoExecute', 'NoSchedule'])) }),
)

const wanted = all<Wanted, Stored>(
  fields<Wanted, Stored>({ deviceClassName: objectName, selectors: deviceSelectors }),
  ({ allocationMode: mode = '', count = 0 }, report) => {
    if (mode === 'All') {
      if (count !== 0) report.invalid('count', count, "must not be specified when allocationMode is 'All'")
    } else if (mode !== 'ExactCount') report.notSupported('allocationMode', mode, ['All', 'ExactCount'])
    else if (count <= 0) report.invalid('count', count, 'must be greater than zero')
  },
  fields<Wanted>({ tolerations: each(toleration) }),
)

const nameOf = ({ name }: { readonly name: string }): string => name

const alternative = all<Data<V1DeviceSubRequest>, Stored>(fields({ name: label }), wanted)

const request = all<Request, Stored>(
  fields<Request, Stored>({
    name: label,
    firstAvailable: keyedList(alternative, { most: 8, member: 'name', keyOf: nameOf }),
    exactly: optional(wanted),
  }),
  ({ exactly, firstAvailable }, report) => {
    const needed = 'exactly one of `exactly` or `firstAvailable` is required'
    if (exactly === undefined && !firstAvailable?.length) report.required('', needed)
    if (exactly !== undefined && firstAvailable?.length)
      report.invalid('', null, `${needed}, but multiple fields are set`)
  },
)

const constraint = all<Data<V1DeviceConstraint>, Context>(
  fields<Data<V1DeviceConstraint>, Context>({ requests: requestReferences }),
  ({ matchAttribute, distinctAttribute }, report) => {
    if (matchAttribute !== undefined) report.at('matchAttribute', deviceFullName, matchAttribute)
    else if (distinctAttribute !== undefined) report.at('distinctAttribute', deviceFullName, distinctAttribute)
    else report.required('matchAttribute')
  },
)

const configuration = all<Data<V1DeviceClaimConfiguration>, Context>(
  fields<Data<V1DeviceClaimConfiguration>, Context>({ requests: requestReferences }),
  (config, report, stored) => deviceConfig(config, report, stored),
)

const claimFields = fields<DeviceClaim, Context>({
  requests: keyedList(request, { most: 32, member: 'name', keyOf: nameOf }),
  constraints: keyedList(constraint, { most: 32 }),
  config: keyedList(configuration, { most: 32 }),
})

/** A device claim. */
export const deviceClaim: Rule<DeviceClaim, Stored> = (claim, report, { stored }) =>
  claimFields(claim, report, { stored, names: requestNamesOf(claim) })

/** The names that references to requests of a claim may use. */
export function requestNamesOf(claim: DeviceClaim): ReadonlySet<string> {
  const requests = (claim.requests as Request[] | null | undefined) ?? []
  return new Set(
    requests.flatMap(({ name, firstAvailable = [] }) => [name, ...firstAvailable.map((one) => `${name}/${one.name}`)]),
  )
}
