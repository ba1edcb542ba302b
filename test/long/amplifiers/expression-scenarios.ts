// Intermediate values of expressions: what n doublings, joins and runs make of a small value, wherever a tenant's
// expressions run.
import type { Sent } from './measured-process.ts'
import type { Scenario } from './scenario.ts'

const maps = '/api/v1/namespaces/default/configmaps'
const admission = '/apis/admissionregistration.k8s.io'
const many = <T>(count: number, make: (index: number) => T): T[] => Array.from({ length: count }, (_, i) => make(i))
const post = (path: string, body: object): Sent => ({ method: 'POST', path, body: JSON.stringify(body) })
const matchConstraints = {
  resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
}

const paths = {
  validating: `${admission}/v1/validatingadmissionpolicies`,
  validatingBinding: `${admission}/v1/validatingadmissionpolicybindings`,
  mutating: `${admission}/v1beta1/mutatingadmissionpolicies`,
  mutatingBinding: `${admission}/v1beta1/mutatingadmissionpolicybindings`,
}

function policy(name: string, spec: object): readonly Sent[] {
  const binding = { policyName: name, validationActions: ['Deny'] }
  return [
    post(paths.validating, { metadata: { name }, spec: { matchConstraints, ...spec } }),
    post(paths.validatingBinding, { metadata: { name }, spec: binding }),
  ]
}

function mutation(name: string, variables: readonly object[], value: string): readonly Sent[] {
  const expression = `[JSONPatch{op: "add", path: "/data", value: {"a": ${value}}}]`
  const mutations = [{ patchType: 'JSONPatch', jsonPatch: { expression } }]
  const spec = { matchConstraints, failurePolicy: 'Ignore', reinvocationPolicy: 'Never', variables, mutations }
  return [
    post(paths.mutating, { metadata: { name }, spec }),
    post(paths.mutatingBinding, { metadata: { name }, spec: { policyName: name } }),
  ]
}

const removed = (count: number): readonly Sent[] =>
  many(count, (i) => Object.values(paths).map((path): Sent => ({ method: 'DELETE', path: `${path}/p${i}` }))).flat()

const variables = (n: number, first: string, next: (before: string) => string): readonly object[] => [
  { name: 'v0', expression: first },
  ...many(n, (i) => ({ name: `v${i + 1}`, expression: next(`variables.v${i}`) })),
]
const doubled = (v: string): string => `[${v}, ${v}]`
const joined = (v: string): string => `${v} + ${v}`
const keyed = (v: string): string => `{"a": ${v}, "b": ${v}}`

const grown: Readonly<Record<string, (n: number) => readonly Sent[]>> = {
  'lists of lists as JSON': (n) => mutation('p0', variables(n, '[1]', doubled), `variables.v${n}`),
  'maps of maps as JSON': (n) => mutation('p0', variables(n, '{"a": 1}', keyed), `variables.v${n}`),
  'lists of lists, printed': (n) => mutation('p0', variables(n, '[1]', doubled), `"%s".format([variables.v${n}])`),
  'lists that are joined, printed': (n) =>
    mutation('p0', variables(n, '[1]', joined), `"%s".format([variables.v${n}])`),
  'texts that are joined': (n) => mutation('p0', variables(n, '"some text"', joined), `variables.v${n}`),
  'lists of lists, compared': (n) =>
    policy('p0', {
      variables: [...variables(n, '[1]', doubled), { name: 'w', expression: `variables.v${n - 1}` }],
      validations: [{ expression: `variables.v${n} == [variables.w, variables.w]` }],
    }),
  'lists that are joined, searched': (n) =>
    policy('p0', {
      variables: variables(n, '[1]', joined),
      validations: [{ expression: `!(2 in variables.v${n})` }],
    }),
}

export const expressionScenarios: readonly Scenario[] = [
  ...Object.entries(grown).map(([title, before]): Scenario => ({
    title: `expressions: n doublings of ${title}`,
    from: 4,
    largest: 32,
    before,
    steps: () => [{ name: 'create', sent: post(maps, { metadata: { generateName: 'x-' } }) }],
    after: () => removed(1),
  })),
  {
    title: 'expressions: n policies of ten validations',
    from: 4,
    largest: 64,
    before: (n) => {
      const list = JSON.stringify(many(30, (i) => i))
      const validations = many(10, () => ({ expression: `${list}.all(a, ${list}.all(b, a + b >= 0))` }))
      return many(n, (i) => policy(`p${i}`, { validations })).flat()
    },
    steps: () => [{ name: 'create', sent: post(maps, { metadata: { generateName: 'x-' } }) }],
    after: removed,
  },
]
