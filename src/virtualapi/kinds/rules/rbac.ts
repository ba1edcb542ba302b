// Roles, ClusterRoles and their bindings.
import { isDeepStrictEqual } from 'node:util'
import type { RbacV1Subject, V1AggregationRule, V1PolicyRule, V1RoleRef } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { pathSegment, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { labelSelector, type LabelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import {
  all,
  fields,
  given,
  nonEmpty,
  oneOf,
  optional,
  orEmpty,
  required,
  validating,
  validatingChange,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

const group = 'rbac.authorization.k8s.io'
/**
 * Kubernetes has no bounds on these lists; here other tenants would wait while long ones are processed. The bounds are
 * far beyond real use.
 */
const maxRules = 10_000
const maxSubjects = 10_000
const maxSelectors = 100

type PolicyRule = Data<V1PolicyRule>
type Subject = Data<RbacV1Subject>

interface Scope {
  readonly namespaced: boolean
}

const policyRule: Rule<PolicyRule, Scope> = (rule, report, { namespaced }) => {
  const { verbs, apiGroups, resources, resourceNames, nonResourceURLs } = rule
  report.at('verbs', someVerb, verbs)
  if (!nonResourceURLs?.length) {
    report.at('apiGroups', someGroup, apiGroups)
    report.at('resources', someResource, resources)
    return
  }
  if (namespaced)
    report.invalid('nonResourceURLs', nonResourceURLs, 'namespaced rules cannot apply to non-resource URLs')
  if (apiGroups?.length || resources?.length || resourceNames?.length)
    report.invalid(
      'nonResourceURLs',
      nonResourceURLs,
      'rules cannot apply to both regular resources and non-resource URLs',
    )
}
const someVerb = nonEmpty('verbs must contain at least one value')
const someGroup = nonEmpty('resource rules must supply at least one api group')
const someResource = nonEmpty('resource rules must supply at least one resource')

type List<T> = readonly T[] | null | undefined

/** A list that is too long is refused, unless it was stored when longer ones were allowed and does not grow. */
const bounded =
  <T, C>(max: number, rule: Rule<T, C>): Rule<List<T>, C & { readonly before: List<T> }> =>
  (list, report, context) => {
    if (list && list.length > Math.max(max, context.before?.length ?? 0)) report.tooMany('', list.length, max)
    else report.each(list, rule, context)
  }

interface Role {
  readonly rules?: readonly PolicyRule[] | null
  readonly aggregationRule?: Data<V1AggregationRule>
}

const policyRules = bounded(maxRules, policyRule)
const roleRule =
  (scope: Scope): Rule<Role, Role | undefined> =>
  ({ rules }, report, old) =>
    report.at('rules', policyRules, rules, { ...scope, before: old?.rules })

/** As upstream, the additional error for an invalid selector prints null. */
const roleSelector: Rule<LabelSelector> = (selector, report) => {
  const before = report.causes.length
  report.check(labelSelector, selector)
  if (report.causes.length > before) report.invalid('', null, 'invalid label selector.')
}
const roleSelectors = bounded(maxSelectors, roleSelector)
const someSelector = nonEmpty('at least one clusterRoleSelector required if aggregationRule is non-nil')
const aggregation = optional<Data<V1AggregationRule>, Role | undefined>(
  ({ clusterRoleSelectors: list }, report, old) => {
    report.at('clusterRoleSelectors', someSelector, list)
    report.at('clusterRoleSelectors', roleSelectors, list, { before: old?.aggregationRule?.clusterRoleSelectors })
  },
)

export const roleRules: KindRules = {
  validatesUpdateTwice: true,
  validate: validating(roleRule({ namespaced: true })),
}

export const clusterRoleRules: KindRules = {
  validatesUpdateTwice: true,
  validate: validating(
    all<Role, Role | undefined>(
      roleRule({ namespaced: false }),
      fields<Role, Role | undefined>({ aggregationRule: aggregation }),
    ),
  ),
}

const ofGroup = oneOf([group])
const noGroup = given(oneOf(['']))
const accountName = given(subdomain)

const subjectRule: Rule<Subject, Scope> = ({ kind, name, namespace, apiGroup = '' }, report, { namespaced }) => {
  if (name === '') report.required('name')
  if (kind === 'User' || kind === 'Group') report.at('apiGroup', ofGroup, apiGroup)
  else if (kind === 'ServiceAccount') {
    report.at('name', accountName, name)
    report.at('apiGroup', noGroup, apiGroup)
    if (!namespaced && !namespace) report.required('namespace')
  } else report.notSupported('kind', kind, ['ServiceAccount', 'User', 'Group'])
}
const subjectRules = bounded(maxSubjects, subjectRule)

interface Binding {
  readonly roleRef: Data<V1RoleRef>
  readonly subjects?: readonly Subject[] | null
}

function bindingRules(kinds: readonly string[], scope: Scope): KindRules {
  const roleRef = fields<Data<V1RoleRef>>({
    apiGroup: orEmpty(ofGroup),
    kind: oneOf(kinds),
    name: required(pathSegment),
  })
  return {
    validatesUpdateTwice: true,
    validate: validating<Binding>((binding, report, old) => {
      report.at('roleRef', roleRef, binding.roleRef)
      report.at('subjects', subjectRules, binding.subjects, { ...scope, before: old?.subjects })
    }),
    validateChange: validatingChange<Binding>(({ roleRef: next }, report, old) => {
      const { apiGroup = '', kind, name } = next
      if (!isDeepStrictEqual(next, old.roleRef))
        report.invalid('roleRef', { APIGroup: apiGroup, Kind: kind, Name: name }, 'cannot change roleRef')
    }),
  }
}

export const roleBindingRules = bindingRules(['Role', 'ClusterRole'], { namespaced: true })
export const clusterRoleBindingRules = bindingRules(['ClusterRole'], { namespaced: false })
