// Validation of the rules that say which requests a webhook or an admission policy handles.
import type { V1RuleWithOperations } from '@kubernetes/client-node'
import { fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { supported } from './values.ts'

export type OperationRule = Data<V1RuleWithOperations>

export const failurePolicies = ['Fail', 'Ignore'] as const
export const matchPolicies = ['Equivalent', 'Exact'] as const
const operations = ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE']

/** Validation errors of one rule. */
export function operationRuleCauses(path: string, rule: OperationRule): StatusCause[] {
  return [
    ...wildcardCauses(`${path}.operations`, rule.operations, 'operations'),
    ...(rule.operations ?? []).flatMap((operation, index) =>
      supported(`${path}.operations[${index}]`, operation, operations),
    ),
    ...wildcardCauses(`${path}.apiGroups`, rule.apiGroups, 'API groups'),
    ...wildcardCauses(`${path}.apiVersions`, rule.apiVersions, 'API versions'),
    // An empty group is valid: it is the core group.
    ...(rule.apiVersions ?? []).flatMap((version, index) =>
      version === '' ? [fieldRequired(`${path}.apiVersions[${index}]`)] : [],
    ),
    ...resourceCauses(`${path}.resources`, rule.resources ?? []),
    ...supported(`${path}.scope`, rule.scope, ['*', 'Cluster', 'Namespaced']),
  ]
}

function wildcardCauses(path: string, list: readonly string[] = [], what: string): StatusCause[] {
  if (list.length === 0) return [fieldRequired(path)]
  return list.length > 1 && list.includes('*')
    ? [fieldInvalid(path, [...list], `if '*' is present, must not specify other ${what}`)]
    : []
}

/** Resources are `x` or `x/y`; either part may be `*`. */
function resourceCauses(path: string, resources: readonly string[]): StatusCause[] {
  const causes = resources.length === 0 ? [fieldRequired(path)] : []
  const anySubresourceOf = new Set<string>()
  const ofAnyResource = new Set<string>()
  let lastBareIsNamed = false
  for (const [index, text] of resources.entries()) {
    const at = `${path}[${index}]`
    if (text === '') {
      causes.push(fieldRequired(at))
      continue
    }
    const slash = text.indexOf('/')
    if (slash < 0) {
      // As upstream, only the last resource without a subresource counts.
      lastBareIsNamed = text !== '*'
      continue
    }
    const resource = text.slice(0, slash)
    const subresource = text.slice(slash + 1)
    const not = (star: string): void =>
      void causes.push(fieldInvalid(at, text, `if '${star}' is present, must not specify ${text}`))
    if (anySubresourceOf.has(resource)) not(`${resource}/*`)
    if (ofAnyResource.has(subresource)) not(`*/${subresource}`)
    if (subresource === '*') anySubresourceOf.add(resource)
    if (resource === '*') ofAnyResource.add(subresource)
  }
  if (resources.length > 1 && resources.includes('*/*'))
    causes.push(fieldInvalid(path, [...resources], "if '*/*' is present, must not specify other resources"))
  if (resources.includes('*') && lastBareIsNamed)
    causes.push(
      fieldInvalid(path, [...resources], "if '*' is present, must not specify other resources without subresources"),
    )
  return causes
}
