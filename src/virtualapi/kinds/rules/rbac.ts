// Roles, ClusterRoles and their bindings.
import { isDeepStrictEqual } from 'node:util'
import type { RbacV1Subject, V1PolicyRule, V1RoleRef } from '@kubernetes/client-node'
import { fieldInvalid, fieldNotSupported, fieldRequired } from '../../../apimachinery/field/index.ts'
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'
import { pathSegmentName } from '../../resources/names.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '../../resources/typed/data.ts'
import { labelSelectorCauses, type LabelSelector } from '../validation/label-selector.ts'
import { subdomain } from '../validation/values.ts'

const group = 'rbac.authorization.k8s.io'

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

export const roleRules: KindRules = {
  asksTwice: true,
  validate: (object) =>
    rulesOf(object).flatMap((rule, index) => ruleCauses(`rules[${index}]`, rule, { namespaced: true })),
}

export const clusterRoleRules: KindRules = {
  asksTwice: true,
  validate(object) {
    const aggregation = object['aggregationRule'] as { clusterRoleSelectors?: LabelSelector[] } | undefined
    const causes = rulesOf(object).flatMap((rule, index) => ruleCauses(`rules[${index}]`, rule, { namespaced: false }))
    if (aggregation === undefined) return causes
    const at = 'aggregationRule.clusterRoleSelectors'
    const selectors = aggregation.clusterRoleSelectors ?? []
    if (selectors.length === 0)
      causes.push(fieldRequired(at, 'at least one clusterRoleSelector required if aggregationRule is non-nil'))
    return [...causes, ...selectors.flatMap((selector, index) => selectorCauses(`${at}[${index}]`, selector))]
  },
}

/** As upstream, the additional error for an invalid selector prints null. */
function selectorCauses(path: string, selector: LabelSelector): StatusCause[] {
  const causes = labelSelectorCauses(path, selector)
  return causes.length > 0 ? [...causes, fieldInvalid(path, null, 'invalid label selector.')] : causes
}

function bindingRules(kinds: readonly string[], { namespaced }: { namespaced: boolean }): KindRules {
  return {
    asksTwice: true,
    validate(object) {
      const { apiGroup = '', kind, name } = object['roleRef'] as Data<V1RoleRef>
      const causes = apiGroup === group ? [] : [fieldNotSupported('roleRef.apiGroup', apiGroup, [group])]
      if (!kinds.includes(kind)) causes.push(fieldNotSupported('roleRef.kind', kind, kinds))
      if (name === '') causes.push(fieldRequired('roleRef.name'))
      else
        for (const text of pathSegmentName(name, { prefix: false }))
          causes.push(fieldInvalid('roleRef.name', name, text))
      const subjects = (object['subjects'] as Data<RbacV1Subject>[] | undefined) ?? []
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
