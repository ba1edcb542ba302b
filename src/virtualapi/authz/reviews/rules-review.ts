// SelfSubjectRulesReview: which rules apply to the requesting user in a namespace? `kubectl auth can-i --list` uses it.
import { badRequest } from '../../../apimachinery/status/index.ts'
import { answered, specOf, textOf, type Review } from './review.ts'

/** Lists the rules that apply to the requesting user. Rejects with 400 without a namespace. */
export const selfSubjectRulesReview: Review = async (object, { user, cluster, authorizer, signal }) => {
  const namespace = textOf(specOf(object)['namespace'])
  if (namespace === '') throw badRequest('no namespace on request')
  const rules = await authorizer.rulesFor(user, namespace, cluster, signal)
  return answered(
    { ...object, spec: {} },
    {
      resourceRules: rules.flatMap(({ verbs, apiGroups, resources, resourceNames }) =>
        resources === undefined
          ? []
          : [
              {
                verbs,
                apiGroups: apiGroups ?? [],
                resources,
                ...(resourceNames === undefined ? {} : { resourceNames }),
              },
            ],
      ),
      nonResourceRules: rules.flatMap(({ verbs, nonResourceURLs }) =>
        nonResourceURLs === undefined ? [] : [{ verbs, nonResourceURLs }],
      ),
      incomplete: false,
    },
  )
}
