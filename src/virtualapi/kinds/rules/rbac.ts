// Roles, ClusterRoles and their bindings.
import { isDeepStrictEqual } from 'node:util'
import type { RbacV1Subject, V1PolicyRule, V1RoleRef } from '@kubernetes/client-node'
import { fieldInvalid, fieldNotSupported, fieldRequired, fieldTooMany } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { pathSegmentName } from '#virtualapi/kinds/resources/names.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { labelSelectorCauses, type LabelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import { subdomain } from '#virtualapi/kinds/validation/values.ts'

const group = 'rbac.authorization.k8s.io'
/** Upstream has no bounds on these lists; here other tenants would wait. All are far beyond what is used. */
const maxRules = 10_000
const maxSubjects = 10_000
const maxSelectors = 100

function ruleCauses(path: string, rule: Data<V1PolicyRule>, { namespaced }: { namespaced: boolean }): StatusCause[] {
  const { apiGroups = [], resources = [], resourceNames = [], nonResourceURLs = [] } = rule
  const verbs = rule.verbs as string[] | null
  const causes = verbs?.length ? [] : [fieldRequired(`${path}.verbs`, 'verbs must contain at least one value')]
  if (nonResourceURLs.length > 0) {
    if (namespaced)
      causes.push(
        fieldInvalid(`${path}.nonResourceURLs`, nonResourceURLs, 'namespaced rules cannot apply to non-resource URLs'),
      )
    if (apiGroups.length > 0 || resources.length > 0 || resourceNames.length > 0)
      causes.push(
        fieldInvalid(
          `${path}.nonResourceURLs`,
          nonResourceURLs,
          'rules cannot apply to both regular resources and non-resource URLs',
        ),
      )
    return causes
  }
  if (apiGroups.length === 0)
    causes.push(fieldRequired(`${path}.apiGroups`, 'resource rules must supply at least one api group'))
  if (resources.length === 0)
    causes.push(fieldRequired(`${path}.resources`, 'resource rules must supply at least one resource'))
  return causes
}

function rulesOf(object: KubeObject): readonly Data<V1PolicyRule>[] {
  return (object['rules'] as Data<V1PolicyRule>[] | null | undefined) ?? []
}

/** Refuses a list that is too long, unless it was stored when longer ones were allowed and does not grow. */
function lengthCauses(path: string, list: readonly unknown[], before: readonly unknown[], max: number): StatusCause[] {
  return list.length > Math.max(max, before.length) ? [fieldTooMany(path, list.length, max)] : []
}

function ruleListCauses(
  object: KubeObject,
  old: KubeObject | undefined,
  scope: { namespaced: boolean },
): StatusCause[] {
  const rules = rulesOf(object)
  const tooMany = lengthCauses('rules', rules, old === undefined ? [] : rulesOf(old), maxRules)
  if (tooMany.length > 0) return tooMany
  return rules.flatMap((rule, index) => ruleCauses(`rules[${index}]`, rule, scope))
}

export const roleRules: KindRules = {
  validatesUpdateTwice: true,
  validate: (object, old) => ruleListCauses(object, old, { namespaced: true }),
}

export const clusterRoleRules: KindRules = {
  validatesUpdateTwice: true,
  validate(object, old) {
    const causes = ruleListCauses(object, old, { namespaced: false })
    const selectors = selectorsOf(object)
    if (selectors === undefined) return causes
    const at = 'aggregationRule.clusterRoleSelectors'
    const tooMany = lengthCauses(at, selectors, (old && selectorsOf(old)) ?? [], maxSelectors)
    if (tooMany.length > 0) return [...causes, ...tooMany]
    if (selectors.length === 0)
      causes.push(fieldRequired(at, 'at least one clusterRoleSelector required if aggregationRule is non-nil'))
    return [...causes, ...selectors.flatMap((selector, index) => selectorCauses(`${at}[${index}]`, selector))]
  },
}

/** Undefined without an aggregation rule. */
function selectorsOf(object: KubeObject): readonly LabelSelector[] | undefined {
  const aggregation = object['aggregationRule'] as { clusterRoleSelectors?: LabelSelector[] } | undefined
  return aggregation === undefined ? undefined : (aggregation.clusterRoleSelectors ?? [])
}

/** As upstream, the additional error for an invalid selector prints null. */
function selectorCauses(path: string, selector: LabelSelector): StatusCause[] {
  const causes = labelSelectorCauses(path, selector)
  return causes.length > 0 ? [...causes, fieldInvalid(path, null, 'invalid label selector.')] : causes
}

function bindingRules(kinds: readonly string[], { namespaced }: { namespaced: boolean }): KindRules {
  return {
    validatesUpdateTwice: true,
    validate(object, old) {
      const { apiGroup = '', kind, name } = object['roleRef'] as Data<V1RoleRef>
      const causes = apiGroup === group ? [] : [fieldNotSupported('roleRef.apiGroup', apiGroup, [group])]
      if (!kinds.includes(kind)) causes.push(fieldNotSupported('roleRef.kind', kind, kinds))
      if (name === '') causes.push(fieldRequired('roleRef.name'))
      else
        for (const text of pathSegmentName(name, { prefix: false }))
          causes.push(fieldInvalid('roleRef.name', name, text))
      const subjects = subjectsOf(object)
      const tooMany = lengthCauses('subjects', subjects, old === undefined ? [] : subjectsOf(old), maxSubjects)
      if (tooMany.length > 0) return [...causes, ...tooMany]
      return [
        ...causes,
        ...subjects.flatMap((subject, index) => subjectCauses(`subjects[${index}]`, subject, namespaced)),
      ]
    },
    validateChange(object, old) {
      const next = object['roleRef'] as Data<V1RoleRef>
      if (isDeepStrictEqual(next, old['roleRef'])) return []
      const { apiGroup = '', kind, name } = next
      return [fieldInvalid('roleRef', { APIGroup: apiGroup, Kind: kind, Name: name }, 'cannot change roleRef')]
    },
  }
}

export const roleBindingRules = bindingRules(['Role', 'ClusterRole'], { namespaced: true })
export const clusterRoleBindingRules = bindingRules(['ClusterRole'], { namespaced: false })

function subjectsOf(object: KubeObject): readonly Data<RbacV1Subject>[] {
  return (object['subjects'] as Data<RbacV1Subject>[] | null | undefined) ?? []
}

function subjectCauses(path: string, subject: Data<RbacV1Subject>, namespaced: boolean): StatusCause[] {
  const { kind, name, namespace = '', apiGroup = '' } = subject
  const causes = name === '' ? [fieldRequired(`${path}.name`)] : []
  switch (kind) {
    case 'ServiceAccount':
      if (name !== '') causes.push(...subdomain(`${path}.name`, name))
      if (apiGroup !== '') causes.push(fieldNotSupported(`${path}.apiGroup`, apiGroup, ['']))
      if (!namespaced && namespace === '') causes.push(fieldRequired(`${path}.namespace`))
      return causes
    case 'User':
    case 'Group':
      if (apiGroup !== group) causes.push(fieldNotSupported(`${path}.apiGroup`, apiGroup, [group]))
      return causes
    default:
      return [...causes, fieldNotSupported(`${path}.kind`, kind, ['ServiceAccount', 'User', 'Group'])]
  }
}
