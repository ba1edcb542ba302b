// Decisions about rights that grow: rules, subjects and bindings against reviews with as many groups, and aggregated
// roles.
import type { Scenario, Step } from './scenario.ts'
import type { Sent } from './measured-process.ts'

const rbac = '/apis/rbac.authorization.k8s.io/v1'
const roles = `${rbac}/clusterroles`
const bindings = `${rbac}/clusterrolebindings`
const mergePatch = 'application/merge-patch+json'
const reviews = '/apis/authorization.k8s.io/v1'
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
const post = (path: string, body: object): Sent => ({ method: 'POST', path, body: JSON.stringify(body) })
const remove = (path: string): Sent => ({ method: 'DELETE', path })

const rule = (i: number): object => ({ apiGroups: [`g${i}.example`], resources: [`r${i}`], verbs: ['get'] })
const role = (name: string, rules: number, rest: object = {}): object => ({
  metadata: { name, ...rest },
  rules: many(rules, rule),
})
const binding = (name: string, roleName: string, subjects: readonly object[]): object => ({
  metadata: { name },
  roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: roleName },
  subjects,
})
const user = (name: string): object => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name })
const group = (name: string): object => ({ apiGroup: 'rbac.authorization.k8s.io', kind: 'Group', name })
const asUser = { 'impersonate-user': 'someone' }

const subjectReview = (groups: readonly string[]): Step => ({
  name: 'SubjectAccessReview',
  sent: post(`${reviews}/subjectaccessreviews`, {
    spec: { user: 'someone', groups, resourceAttributes: { verb: 'get', group: 'none.example', resource: 'x' } },
  }),
})
const rulesReview: Step = {
  name: 'SelfSubjectRulesReview',
  sent: { ...post(`${reviews}/selfsubjectrulesreviews`, { spec: { namespace: 'default' } }), headers: asUser },
}
const selfReview: Step = {
  name: 'SelfSubjectAccessReview',
  sent: {
    ...post(`${reviews}/selfsubjectaccessreviews`, { spec: { resourceAttributes: { verb: 'get', resource: 'x' } } }),
    headers: asUser,
  },
}
const refused: Step = { name: 'a refused GET', sent: { method: 'GET', path: '/api/v1/secrets', headers: asUser } }
const asked = [selfReview, rulesReview, refused]

/** Rights: the cost of who may do what grows with rules times subjects times groups. */
export const accessScenarios: readonly Scenario[] = [
  {
    title: 'RBAC: n rules of one role, bound n times to one user',
    largest: 8192,
    steps: (n) => [
      { name: 'create role', sent: post(roles, role('many', n)), needed: true },
      {
        name: 'create binding',
        sent: post(
          bindings,
          binding(
            'many',
            'many',
            many(n, () => user('someone')),
          ),
        ),
      },
      ...asked,
    ],
    after: () => [remove(`${bindings}/many`), remove(`${roles}/many`)],
  },
  {
    title: 'RBAC: n distinct subjects, a review with n distinct groups',
    largest: 8192,
    steps: (n) => [
      {
        name: 'create binding',
        sent: post(
          bindings,
          binding(
            'many',
            'view',
            many(n, (i) => group(`g${i}`)),
          ),
        ),
      },
      subjectReview(many(n, (i) => `other${i}`)),
    ],
    after: () => [remove(`${bindings}/many`)],
  },
  {
    title: 'RBAC: n like subjects of a missing role, a review with n like groups',
    largest: 8192,
    steps: (n) => [
      {
        name: 'create binding',
        sent: post(
          bindings,
          binding(
            'many',
            'missing',
            many(n, () => group('a')),
          ),
        ),
      },
      subjectReview(many(n, () => 'a')),
    ],
    after: () => [remove(`${bindings}/many`)],
  },
  {
    title: 'RBAC: n bindings of one user to a role of 100 rules',
    largest: 512,
    before: (n) => [
      post(roles, role('hundred', 100)),
      ...many(n, (i) => post(bindings, binding(`many-${i}`, 'hundred', [user('someone')]))),
    ],
    steps: () => asked,
    after: (n) => [...many(n, (i) => remove(`${bindings}/many-${i}`)), remove(`${roles}/hundred`)],
  },
  {
    title: 'RBAC: 8 roles of n rules, aggregated by n like selectors',
    largest: 4096,
    before: (n) => many(8, (i) => post(roles, role(`part-${i}`, n, { labels: { part: 'yes' } }))),
    steps: (n) => [
      {
        name: 'create aggregate',
        sent: post(roles, {
          metadata: { name: 'whole' },
          aggregationRule: { clusterRoleSelectors: many(Math.min(n, 256), () => ({ matchLabels: { part: 'yes' } })) },
        }),
      },
      {
        name: 'change a part',
        sent: {
          method: 'PATCH',
          path: `${roles}/part-0`,
          type: mergePatch,
          body: { metadata: { annotations: { n: String(n) } } },
        },
      },
    ],
    after: () => [remove(`${roles}/whole`), ...many(8, (i) => remove(`${roles}/part-${i}`))],
  },
  {
    title: 'a role with n verbs, groups, resources and names in one rule',
    largest: 16_384,
    steps: (n) => [
      {
        name: 'create role',
        sent: post(roles, {
          metadata: { name: 'wide' },
          rules: [
            {
              apiGroups: many(n / 4, (i) => `g${i}`),
              resources: many(n / 4, (i) => `r${i}`),
              verbs: many(n / 4, (i) => `v${i}`),
              resourceNames: many(n / 4, (i) => `n${i}`),
            },
          ],
        }),
      },
      { name: 'bind', sent: post(bindings, binding('wide', 'wide', [user('someone')])) },
      ...asked,
      { name: 'escalation check', sent: { ...post(roles, role('wider', n / 4)), headers: asUser } },
    ],
    after: () => [remove(`${bindings}/wide`), remove(`${roles}/wide`)],
  },
  {
    title: 'a SubjectAccessReview with n extra fields',
    steps: (n) => [
      {
        name: 'review',
        sent: post(`${reviews}/subjectaccessreviews`, {
          spec: {
            user: 'a',
            extra: Object.fromEntries(many(n, (i) => [`k${i}`, ['v']])),
            nonResourceAttributes: { verb: 'get', path: '/x' },
          },
        }),
      },
    ],
  },
  {
    title: 'a TokenRequest with n audiences, and the TokenReview of its token with n audiences',
    steps: (n) => [
      {
        name: 'TokenRequest',
        sent: post('/api/v1/namespaces/default/serviceaccounts/default/token', {
          spec: { audiences: many(n, (i) => `audience-${i}`) },
        }),
      },
      {
        name: 'TokenReview',
        sent: post('/apis/authentication.k8s.io/v1/tokenreviews', {
          spec: { token: 'a.b.c', audiences: many(n, (i) => `audience-${i}`) },
        }),
      },
      {
        name: 'TokenReview of a long token',
        sent: post('/apis/authentication.k8s.io/v1/tokenreviews', { spec: { token: 'a.'.repeat(n * 16) } }),
      },
    ],
  },
]
