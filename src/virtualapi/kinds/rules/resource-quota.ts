// ResourceQuotas: limits per resource, for all objects of a namespace or for those in a scope.
import type { V1ResourceQuotaSpec, V1ScopedResourceSelectorRequirement } from '@kubernetes/client-node'
import { fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import { goValue } from '#apimachinery/text/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { isQuotaName, quotaResourceCauses } from '#virtualapi/kinds/validation/resource-names.ts'
import { amountCauses } from '#virtualapi/kinds/validation/resources.ts'
import { fieldImmutable } from '#virtualapi/kinds/validation/values.ts'

type Spec = Data<V1ResourceQuotaSpec>

const computed = ['cpu', 'memory', 'requests.cpu', 'requests.memory', 'limits.cpu', 'limits.memory']
const ofPods: ReadonlySet<string> = new Set(['pods', ...computed])
/** The resources that each scope can limit. */
const scopes: Readonly<Record<string, ReadonlySet<string>>> = {
  BestEffort: new Set(['pods']),
  NotBestEffort: ofPods,
  Terminating: ofPods,
  NotTerminating: ofPods,
  PriorityClass: ofPods,
  CrossNamespacePodAffinity: ofPods,
  VolumeAttributesClass: new Set(['persistentvolumeclaims', 'requests.storage']),
}
const existing = ['BestEffort', 'NotBestEffort', 'Terminating', 'NotTerminating', 'CrossNamespacePodAffinity']
const opposites = [
  ['BestEffort', 'NotBestEffort'],
  ['Terminating', 'NotTerminating'],
] as const
/** Bound of the errors about unsupported resources in one response. */
const maxUncounted = 2000
const existsText =
  "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"

export const resourceQuotaRules: KindRules = {
  validate(object) {
    const spec = object['spec'] as Spec
    return [...hardCauses('spec.hard', spec.hard), ...scopesCauses(spec), ...selectorCauses(spec)]
  },
  validateChange(object, old) {
    const { scopes: next = [] } = object['spec'] as Spec
    const { scopes: before = [] } = old['spec'] as Spec
    const known = new Set(before)
    return new Set(next).size === known.size && next.every((scope) => known.has(scope))
      ? []
      : [fieldInvalid('spec.scopes', next, fieldImmutable)]
  },
}

/** Validation errors of an update through the subresource `status`. */
export function quotaStatusCauses({ status }: KubeObject): StatusCause[] {
  if (!isJsonObject(status)) return []
  return (['hard', 'used'] as const).flatMap((member) => hardCauses(`status.${member}`, status[member] as Spec['hard']))
}

function hardCauses(path: string, hard: Spec['hard']): StatusCause[] {
  return Object.entries(hard ?? {}).flatMap(([name, text]) => [
    ...quotaResourceCauses(`${path}[${name}]`, name),
    ...amountCauses(`${path}[${name}]`, name, text),
  ])
}

/**
 * Returns a function that tells how many of the limited resources a scope does not support. Upstream reports an error
 * for each, every time the scope is named. The product of two long lists is bounded by `maxUncounted`.
 */
function uncounted({ hard }: Spec): (scope: string) => number {
  const names = Object.keys(hard ?? {}).filter(isQuotaName)
  const numbers = Object.entries(scopes).map(
    ([scope, counts]) => [scope, names.filter((name) => !counts.has(name)).length] as const,
  )
  const byScope = new Map(numbers)
  let left = maxUncounted
  return (scope) => {
    const number = Math.min(byScope.get(scope) ?? 0, left)
    left -= number
    return number
  }
}

const uncountedText = 'unsupported scope applied to resource'

/** Makes errors that print the same value. The value is formatted once, since it may be long. */
function complaint(field: string, shown: string): (detail: string) => StatusCause {
  return (detail) => ({ reason: 'FieldValueInvalid', message: `Invalid value: ${shown}: ${detail}`, field })
}

function scopesCauses(spec: Spec): StatusCause[] {
  const { scopes: own = [] } = spec
  if (own.length === 0) return []
  const wrong = complaint('spec.scopes', goValue(own))
  const countOf = uncounted(spec)
  return [...own.flatMap((scope) => oneScopeCauses(scope, countOf, wrong)), ...oppositeCauses(new Set(own), own)]
}

function oneScopeCauses(
  scope: string,
  countOf: (scope: string) => number,
  wrong: (detail: string) => StatusCause,
): StatusCause[] {
  if (scopes[scope] === undefined) return [wrong('unsupported scope')]
  return new Array<StatusCause>(countOf(scope)).fill(wrong(uncountedText))
}

function oppositeCauses(found: ReadonlySet<string>, shown: string[] | null): StatusCause[] {
  return opposites
    .filter((pair) => pair.every((scope) => found.has(scope)))
    .map(() => fieldInvalid('spec.scopes', shown, 'conflicting scopes'))
}

function selectorCauses(spec: Spec): StatusCause[] {
  const { scopeSelector } = spec
  if (scopeSelector === undefined) return []
  const path = 'spec.scopeSelector.matchExpressions'
  const wrong = complaint(path, internalText('core.ScopeSelector', scopeSelector))
  const requirements = scopeSelector.matchExpressions ?? []
  const countOf = uncounted(spec)
  return [
    ...requirements.flatMap((requirement) => requirementCauses(path, requirement, countOf, wrong)),
    ...oppositeCauses(new Set(requirements.map(({ scopeName }) => scopeName)), spec.scopes ?? null),
  ]
}

function requirementCauses(
  path: string,
  { scopeName, operator, values = [] }: Data<V1ScopedResourceSelectorRequirement>,
  countOf: (scope: string) => number,
  wrong: (detail: string) => StatusCause,
): StatusCause[] {
  const causes: StatusCause[] = []
  if (scopes[scopeName] === undefined) causes.push(fieldInvalid(`${path}.scopeName`, scopeName, 'unsupported scope'))
  causes.push(...new Array<StatusCause>(countOf(scopeName)).fill(wrong(uncountedText)))
  if (existing.includes(scopeName) && operator !== 'Exists')
    causes.push(fieldInvalid(`${path}.operator`, operator, existsText))
  if (operator === 'In' || operator === 'NotIn') {
    if (values.length === 0)
      causes.push(
        fieldRequired(
          `${path}.values`,
          "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector",
        ),
      )
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values.length > 0)
      causes.push(
        fieldInvalid(
          `${path}.values`,
          values,
          "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
        ),
      )
  } else causes.push(fieldInvalid(`${path}.operator`, operator, 'not a valid selector operator'))
  return causes
}
