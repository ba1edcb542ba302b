// ResourceQuotas: limits per resource, for all objects of a namespace or for those in a scope.
import type {
  V1ResourceQuotaSpec,
  V1ResourceQuotaStatus,
  V1ScopedResourceSelectorRequirement,
} from '@kubernetes/client-node'
import { goValue } from '#apimachinery/text/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { isQuotaName, quotaResource } from '#virtualapi/kinds/validation/resource-names.ts'
import { amount } from '#virtualapi/kinds/validation/resources.ts'
import {
  all,
  eachValue,
  fieldImmutable,
  fields,
  validating,
  validatingChange,
  type ObjectOf,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1ResourceQuotaSpec>
type Quota = ObjectOf<Spec>

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

const hard = eachValue<string>((text, report, name) => {
  report.check(quotaResource, name)
  amount(text, report, name)
})

/** The status, which only the subresource `status` writes. */
export const quotaStatus = fields<Data<V1ResourceQuotaStatus>>({ hard, used: hard })

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

function checkOpposites(found: ReadonlySet<string>, shown: string[] | null, report: Report): void {
  for (const pair of opposites)
    if (pair.every((scope) => found.has(scope))) report.invalid('spec.scopes', shown, 'conflicting scopes')
}

const scopeList: Rule<Quota> = ({ spec }, report) => {
  const { scopes: own = [] } = spec
  if (own.length === 0) return
  // Formatted once, since the value may be long.
  const shown = goValue(own)
  const countOf = uncounted(spec)
  for (const scope of own) {
    if (scopes[scope] === undefined) report.invalidText('spec.scopes', shown, 'unsupported scope')
    else for (let count = countOf(scope); count > 0; count--) report.invalidText('spec.scopes', shown, uncountedText)
  }
  checkOpposites(new Set(own), own, report)
}

const requirement: Rule<Data<V1ScopedResourceSelectorRequirement>> = ({ scopeName, operator, values }, report) => {
  if (existing.includes(scopeName) && operator !== 'Exists') report.invalid('operator', operator, existsText)
  if (operator === 'In' || operator === 'NotIn') {
    if (!values?.length)
      report.required('values', "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector")
  } else if (operator === 'Exists' || operator === 'DoesNotExist') {
    if (values?.length)
      report.invalid(
        'values',
        values,
        "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector",
      )
  } else report.invalid('operator', operator, 'not a valid selector operator')
}

/** As upstream, paths have no index. */
const scopeSelectorRule: Rule<Quota> = ({ spec }, report) => {
  const { scopeSelector } = spec
  if (scopeSelector === undefined) return
  const path = 'spec.scopeSelector.matchExpressions'
  const shown = internalText('core.ScopeSelector', scopeSelector)
  const requirements = scopeSelector.matchExpressions ?? []
  const countOf = uncounted(spec)
  for (const one of requirements) {
    const { scopeName } = one
    if (scopes[scopeName] === undefined) report.invalid(`${path}.scopeName`, scopeName, 'unsupported scope')
    for (let count = countOf(scopeName); count > 0; count--) report.invalidText(path, shown, uncountedText)
    report.at(path, requirement, one)
  }
  checkOpposites(new Set(requirements.map(({ scopeName }) => scopeName)), spec.scopes ?? null, report)
}

const scopesChange: Rule<Quota, Quota> = ({ spec: { scopes: next = [] } }, report, { spec: { scopes: old = [] } }) => {
  const known = new Set(old)
  if (new Set(next).size !== known.size || !next.every((scope) => known.has(scope)))
    report.invalid('spec.scopes', next, fieldImmutable)
}

export const resourceQuotaRules: KindRules = {
  validate: validating(all<Quota>(fields<Quota>({ spec: fields<Spec>({ hard }) }), scopeList, scopeSelectorRule)),
  validateChange: validatingChange(scopesChange),
}
