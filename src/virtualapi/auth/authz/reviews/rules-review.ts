// SelfSubjectRulesReview: lists the rules that apply to the requesting user in a namespace. `kubectl auth can-i --list`
// uses it.
import { aggregateText } from '#apimachinery/field/index.ts'
import { badRequest } from '#apimachinery/status/index.ts'
import { listRules } from '#virtualapi/auth/authz/held-rules.ts'
import type { PolicyRule } from '#virtualapi/auth/authz/policy-rules.ts'
import { answered, specOf, textOf, type Review } from './review.ts'

/**
 * Lists the rules that apply to the requesting user, each once; `incomplete` is true if there are more rules than a
 * response may hold. Rejects with 400 if no namespace is given.
 */
export const selfSubjectRulesReview: Review = async (object, { user, cluster, authorizer, work, signal }) => {
  const namespace = textOf(specOf(object)['namespace'])
  if (namespace === '') throw badRequest('no namespace on request')
  const { roles, problems, isComplete } = await authorizer.rulesFor(user, namespace, { cluster, work, signal })
  const { rules, isCut } = await listRules(roles, { work, signal })
  const errors = [...problems, ...(isCut ? ['the rules are too many to be listed'] : [])]
  return answered(
    { ...object, spec: {} },
    {
      resourceRules: rules.flatMap(resourceRuleOf),
      nonResourceRules: rules.flatMap(({ verbs, nonResourceURLs }) =>
        nonResourceURLs === undefined ? [] : [{ verbs, nonResourceURLs }],
      ),
      incomplete: isCut || !isComplete,
      ...(errors.length === 0 ? {} : { evaluationError: aggregateText(errors) }),
    },
  )
}

function resourceRuleOf({ verbs, apiGroups, resources, resourceNames }: PolicyRule): object[] {
  if (resources === undefined) return []
  return [{ verbs, apiGroups: apiGroups ?? [], resources, ...(resourceNames === undefined ? {} : { resourceNames }) }]
}
