// Validation of the device requests of a ResourceClaim or ResourceClaimTemplate.
import type {
  V1DeviceClaim,
  V1DeviceConstraint,
  V1DeviceRequest,
  V1DeviceSelector,
  V1DeviceSubRequest,
  V1DeviceToleration,
  V1ExactDeviceRequest,
} from '@kubernetes/client-node'
import {
  byteLength,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
  labelValueErrors,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { deviceExpressionCauses } from './device-expression.ts'
import { deviceConfigCauses, type DeviceConfig } from './device-config.ts'
import {
  deviceFullNameCauses,
  listCauses,
  repeatedCauses,
  requestReferenceCauses,
  type RequestNames,
} from './device-names.ts'
import { label, oneOf, qualifiedName, subdomain } from './values.ts'

export type DeviceClaim = Data<V1DeviceClaim>
type Request = Data<V1DeviceRequest>
type Alternative = Data<V1DeviceSubRequest>
type Wanted = Alternative | Data<V1ExactDeviceRequest>
type Selector = Data<V1DeviceSelector>

const most = { requests: 32, alternatives: 8, selectors: 32, constraints: 32, configs: 32 } as const
const longestExpression = 10 * 1024

/** Validation errors of a device claim. `stored`: the claim is unchanged since it was stored. */
export function deviceClaimCauses(path: string, claim: DeviceClaim, { stored }: { stored: boolean }): StatusCause[] {
  const requests = requestsOf(claim)
  const names = requestNamesOf(claim)
  const references = (at: string, list: readonly string[] = []): StatusCause[] => referencesCauses(at, list, names)
  return [
    ...listCauses(`${path}.requests`, requests, most.requests, (at, request) => requestCauses(at, request, { stored })),
    ...repeatedCauses(`${path}.requests`, namesOf(requests), 'name'),
    ...listCauses(`${path}.constraints`, claim.constraints ?? [], most.constraints, (at, constraint) => [
      ...references(`${at}.requests`, constraint.requests),
      ...attributeCauses(at, constraint),
    ]),
    ...listCauses(`${path}.config`, claim.config ?? [], most.configs, (at, config) => [
      ...references(`${at}.requests`, config.requests),
      ...deviceConfigCauses(at, config as DeviceConfig, { stored }),
    ]),
  ]
}

/** Validates a list of references to requests: each must exist, none twice, not too many. */
export function referencesCauses(path: string, list: readonly string[], names: RequestNames): StatusCause[] {
  return [
    ...listCauses(path, list, most.requests, (at, name) => requestReferenceCauses(at, name, names)),
    ...repeatedCauses(path, list, ''),
  ]
}

/** The names that a reference may use. */
export function requestNamesOf(claim: DeviceClaim): RequestNames {
  return new Set(
    requestsOf(claim).flatMap(({ name, firstAvailable = [] }) => [
      name,
      ...firstAvailable.map((alternative) => `${name}/${alternative.name}`),
    ]),
  )
}

function requestsOf(claim: DeviceClaim): readonly Request[] {
  return (claim.requests as Request[] | null | undefined) ?? []
}

const namesOf = (list: readonly { readonly name: string }[]): string[] => list.map(({ name }) => name)

interface Stored {
  readonly stored: boolean
}

function requestCauses(path: string, { name, exactly, firstAvailable = [] }: Request, stored: Stored): StatusCause[] {
  const oneOf = 'exactly one of `exactly` or `firstAvailable` is required'
  const causes = [
    ...label(`${path}.name`, name),
    ...listCauses(`${path}.firstAvailable`, firstAvailable, most.alternatives, (at, alternative) =>
      alternativeCauses(at, alternative, stored),
    ),
    ...repeatedCauses(`${path}.firstAvailable`, namesOf(firstAvailable), 'name'),
    ...(exactly === undefined ? [] : wantedCauses(`${path}.exactly`, exactly, stored)),
  ]
  if (exactly === undefined && firstAvailable.length === 0) return [...causes, fieldRequired(path, oneOf)]
  return exactly !== undefined && firstAvailable.length > 0
    ? [...causes, fieldInvalid(path, null, `${oneOf}, but multiple fields are set`)]
    : causes
}

function alternativeCauses(path: string, alternative: Alternative, stored: Stored): StatusCause[] {
  return [...label(`${path}.name`, alternative.name), ...wantedCauses(path, alternative, stored)]
}

function wantedCauses(path: string, wanted: Wanted, stored: Stored): StatusCause[] {
  const { deviceClassName, selectors = [], allocationMode = '', count = 0, tolerations = [] } = wanted
  return [
    ...(deviceClassName === ''
      ? [fieldRequired(`${path}.deviceClassName`)]
      : subdomain(`${path}.deviceClassName`, deviceClassName)),
    ...selectorsCauses(`${path}.selectors`, selectors, stored),
    ...modeCauses(path, allocationMode, count),
    ...tolerations.flatMap((toleration, index) => tolerationCauses(`${path}.tolerations[${index}]`, toleration)),
  ]
}

function modeCauses(path: string, mode: string, count: number): StatusCause[] {
  if (mode === 'All')
    return count === 0
      ? []
      : [fieldInvalid(`${path}.count`, count, "must not be specified when allocationMode is 'All'")]
  if (mode === 'ExactCount') return count > 0 ? [] : [fieldInvalid(`${path}.count`, count, 'must be greater than zero')]
  return [fieldNotSupported(`${path}.allocationMode`, mode, ['All', 'ExactCount'])]
}

/** Validates device selectors. `stored`: they are unchanged since they were stored. */
export function selectorsCauses(
  path: string,
  selectors: readonly Selector[],
  { stored }: { readonly stored: boolean },
): StatusCause[] {
  return listCauses(path, selectors, most.selectors, (at, { cel }) => {
    if (cel === undefined) return [fieldRequired(`${at}.cel`)]
    return byteLength(cel.expression) > longestExpression
      ? [fieldTooLong(`${at}.cel.expression`, longestExpression)]
      : deviceExpressionCauses(`${at}.cel.expression`, cel.expression, { stored })
  })
}

function attributeCauses(path: string, constraint: Data<V1DeviceConstraint>): StatusCause[] {
  const { matchAttribute, distinctAttribute } = constraint
  if (matchAttribute !== undefined) return deviceFullNameCauses(`${path}.matchAttribute`, matchAttribute)
  return distinctAttribute === undefined
    ? [fieldRequired(`${path}.matchAttribute`)]
    : deviceFullNameCauses(`${path}.distinctAttribute`, distinctAttribute)
}

function tolerationCauses(path: string, toleration: Data<V1DeviceToleration>): StatusCause[] {
  const { key = '', operator = '', value = '', effect } = toleration
  return [
    ...(key === '' ? [] : qualifiedName(`${path}.key`, key)),
    ...(operator === 'Exists'
      ? value === ''
        ? []
        : [fieldInvalid(`${path}.value`, value, 'must be empty for operator `Exists`')]
      : operator === 'Equal'
        ? labelValueErrors(value).map((text) => fieldInvalid(`${path}.value`, value, text))
        : [fieldNotSupported(`${path}.operator`, operator, ['Equal', 'Exists'])]),
    ...oneOf(`${path}.effect`, effect, ['NoExecute', 'NoSchedule']),
  ]
}
