// Validation of MatchResources: the requests that an admission policy or its binding handles.
import type { V1MatchResources } from '@kubernetes/client-node'
import { fieldDuplicate, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { matchPolicies, operationRuleCauses } from './admission-rules.ts'
import { labelSelectorCauses } from './label-selector.ts'
import { supported } from './values.ts'

type MatchResources = Data<V1MatchResources>
type NamedRule = NonNullable<MatchResources['resourceRules']>[number]

/** Validation errors of MatchResources that have their defaults; none if absent. */
export function matchResourcesCauses(path: string, match: MatchResources | undefined): StatusCause[] {
  if (match === undefined) return []
  const { matchPolicy, namespaceSelector, objectSelector, resourceRules = [], excludeResourceRules = [] } = match
  const rules = (member: string, list: readonly NamedRule[]): StatusCause[] =>
    list.flatMap((rule, index) => namedRuleCauses(`${path}.${member}[${index}]`, rule))
  return [
    ...supported(`${path}.matchPolicy`, matchPolicy, matchPolicies),
    ...labelSelectorCauses(`${path}.namespaceSelector`, namespaceSelector),
    ...labelSelectorCauses(`${path}.objectSelector`, objectSelector),
    ...rules('resourceRules', resourceRules),
    ...rules('excludeResourceRules', excludeResourceRules),
  ]
}

function namedRuleCauses(path: string, { resourceNames = [], ...rule }: NamedRule): StatusCause[] {
  const seen = new Set<string>()
  const causes: StatusCause[] = []
  for (const [index, name] of resourceNames.entries()) {
    const at = `${path}.resourceNames[${index}]`
    causes.push(...pathSegmentName(name, { prefix: false }).map((text) => fieldInvalid(at, name, text)))
    if (seen.has(name)) causes.push(fieldDuplicate(at, name))
    seen.add(name)
  }
  return [...causes, ...operationRuleCauses(path, rule)]
}

/** Validates matchConstraints of a policy: they are required and need at least one resource rule. */
export function matchConstraintsCauses(path: string, match: MatchResources | undefined): StatusCause[] {
  if (match === undefined) return [fieldRequired(path)]
  const { resourceRules = [] } = match
  return [
    ...matchResourcesCauses(path, match),
    ...(resourceRules.length === 0 ? [fieldRequired(`${path}.resourceRules`)] : []),
  ]
}
