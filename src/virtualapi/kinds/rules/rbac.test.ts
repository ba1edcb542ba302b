import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import { clusterRoleBindingRules, clusterRoleRules, roleRules } from './rbac.ts'

const group = 'rbac.authorization.k8s.io'
// None of these rules looks at the request.
const context = {} as RequestContext
const list = (length: number, item: object): object[] => Array<object>(length).fill(item)
const object = (fields: object): KubeObject => ({ kind: '', apiVersion: `${group}/v1`, metadata: {}, ...fields })

describe('the bounds on RBAC objects', () => {
  for (const { title, rules, max, of, field } of [
    {
      title: 'rules of a Role',
      rules: roleRules,
      max: 10_000,
      of: (count: number) => ({ rules: list(count, { verbs: ['get'], apiGroups: [''], resources: ['pods'] }) }),
      field: 'rules',
    },
    {
      title: 'rules of a ClusterRole',
      rules: clusterRoleRules,
      max: 10_000,
      of: (count: number) => ({ rules: list(count, { verbs: ['get'], nonResourceURLs: ['/metrics'] }) }),
      field: 'rules',
    },
    {
      title: 'selectors of an aggregation rule',
      rules: clusterRoleRules,
      max: 100,
      of: (count: number) => ({ aggregationRule: { clusterRoleSelectors: list(count, { matchLabels: { a: 'b' } }) } }),
      field: 'aggregationRule.clusterRoleSelectors',
    },
    {
      title: 'subjects of a binding',
      rules: clusterRoleBindingRules,
      max: 10_000,
      of: (count: number) => ({
        roleRef: { apiGroup: group, kind: 'ClusterRole', name: 'r' },
        subjects: list(count, { apiGroup: group, kind: 'User', name: 'bob' }),
      }),
      field: 'subjects',
    },
  ])
    it(`allow ${max} ${title}, and more only in an object that had more`, () => {
      const check = (count: number, before?: number): unknown =>
        rules.validate?.(object(of(count)), before === undefined ? undefined : object(of(before)), context)
      const tooMany = [
        {
          reason: 'FieldValueTooMany',
          field,
          message: `Too many: ${max + 2}: must have at most ${max} items`,
        },
      ]
      expect(check(max)).to.deep.equal([])
      expect(check(max + 2)).to.deep.equal(tooMany)
      expect(check(max + 2, max)).to.deep.equal(tooMany)
      expect(check(max + 2, max + 2)).to.deep.equal([])
      expect(check(max + 1, max + 2)).to.deep.equal([])
    })
})
