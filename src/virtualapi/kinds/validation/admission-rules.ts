// Validation of the rules that select the requests which a webhook or an admission policy handles.
import type { V1RuleWithOperations } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { all, each, fields, must, nonEmpty, oneOf, required, type Rule } from './vocabulary.ts'

export type OperationRule = Data<V1RuleWithOperations>

export const failurePolicy = oneOf(['Fail', 'Ignore'])
export const matchPolicy = oneOf(['Equivalent', 'Exact'])

/** A list in which `*` must be the only item. `what`: the name of other items in the message. */
export const wildcardAlone = (what: string): Rule<readonly string[] | null | undefined> =>
  must(
    (list: string[]) => list.length < 2 || !list.includes('*'),
    `if '*' is present, must not specify other ${what}`,
  ) as Rule<readonly string[] | null | undefined>

/** Resources are `x` or `x/y`; either part may be `*`. */
const resourceList: Rule<string[]> = (resources, report) => {
  const anySubresourceOf = new Set<string>()
  const ofAnyResource = new Set<string>()
  let lastBareIsNamed = false
  for (const [index, text] of resources.entries()) {
    if (text === '') {
      report.required(index)
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
    const not = (star: string): void => report.invalid(index, text, `if '${star}' is present, must not specify ${text}`)
    if (anySubresourceOf.has(resource)) not(`${resource}/*`)
    if (ofAnyResource.has(subresource)) not(`*/${subresource}`)
    if (subresource === '*') anySubresourceOf.add(resource)
    if (resource === '*') ofAnyResource.add(subresource)
  }
  if (resources.length > 1 && resources.includes('*/*'))
    report.invalid('', resources, "if '*/*' is present, must not specify other resources")
  if (resources.includes('*') && lastBareIsNamed)
    report.invalid('', resources, "if '*' is present, must not specify other resources without subresources")
}

export const operationRule = fields<OperationRule>({
  operations: all<string[] | undefined>(
    required(wildcardAlone('operations')),
    each(oneOf(['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'])),
  ),
  // An empty group is valid: it is the core group.
  apiGroups: required(wildcardAlone('API groups')),
  apiVersions: all<string[] | undefined>(required(wildcardAlone('API versions')), each(nonEmpty())),
  resources: required(resourceList),
  scope: oneOf(['*', 'Cluster', 'Namespaced']),
})
