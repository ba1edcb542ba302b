// ValidatingAdmissionPolicies: what is refused when they are written, and what they refuse.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'

const group = '/apis/admissionregistration.k8s.io/v1'
const policiesPath = `${group}/validatingadmissionpolicies`
const bindingsPath = `${group}/validatingadmissionpolicybindings`
const configMaps = '/api/v1/namespaces/$NS/configmaps'

const rulesFor = (resources: readonly string[], operations = ['CREATE', 'UPDATE']): JsonObject => ({
  resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations, resources: [...resources] }],
})

function policy(name: string, spec: JsonObject): JsonObject {
  return {
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy', metadata: { name } },
    spec: { matchConstraints: rulesFor(['configmaps']), ...spec },
  }
}

function binding(name: string, spec: JsonObject): JsonObject {
  return {
    ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicyBinding', metadata: { name } },
    spec: { policyName: name, validationActions: ['Deny'], ...spec },
  }
}

const configMap = (name: string, data: JsonObject, labels: JsonObject = {}): JsonObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels } },
  data,
})

/** Expressions that are wrong or right when a policy is written. */
const specs: readonly (readonly [string, JsonObject])[] = [
  ['an expression that does not parse', { validations: [{ expression: 'object.' }] }],
  ['an expression of another type', { validations: [{ expression: '"a"' }] }],
  ['an expression of any type', { validations: [{ expression: 'object.a' }] }],
  ['an unknown variable', { validations: [{ expression: 'variables.a == 1' }] }],
  ['a pattern that cannot be', { validations: [{ expression: '"a".matches("[")' }] }],
  ['an unknown field of the request', { validations: [{ expression: 'request.nothing == ""' }] }],
  ['an unknown field of the namespace', { validations: [{ expression: 'namespaceObject.metadata.uid == ""' }] }],
  ['params without a kind', { validations: [{ expression: 'params.a == 1' }] }],
  [
    'a message with the authorizer',
    { validations: [{ expression: 'true', messageExpression: 'authorizer.path("/").check("get").reason()' }] },
  ],
  ['a message that is no text', { validations: [{ expression: 'true', messageExpression: '1' }] }],
  ['an annotation that is no text', { auditAnnotations: [{ key: 'a', valueExpression: '1' }] }],
  ['an annotation that may be null', { auditAnnotations: [{ key: 'a', valueExpression: 'null' }] }],
  [
    'a condition that is wrong',
    { validations: [{ expression: 'true' }], matchConditions: [{ name: 'a', expression: 'a' }] },
  ],
  [
    'a condition about a variable',
    {
      variables: [{ name: 'a', expression: '1' }],
      ...{ validations: [{ expression: 'true' }], matchConditions: [{ name: 'a', expression: 'variables.a == 1' }] },
    },
  ],
  [
    'variables in a wrong order',
    {
      variables: [
        { name: 'a', expression: 'variables.b' },
        { name: 'b', expression: '1' },
        { name: 'c', expression: '[1, 2].map(x, variables.b + x)' },
      ],
      validations: [{ expression: 'variables.c.all(x, x > "a")' }],
    },
  ],
  ['a library of the next version', { validations: [{ expression: 'lists.range(3) == [0, 1, 2]' }] }],
]

interface Case {
  readonly word: string
  readonly policy: JsonObject
  readonly binding?: JsonObject
  /** ConfigMaps to be created. */
  readonly tries: readonly JsonObject[]
  readonly before?: readonly JsonObject[]
  readonly labels?: JsonObject
}

/** Refused by every policy here: shows that the policy is effective. */
const probe = { expression: '!has(object.data) || !("probe" in object.data)', message: 'probe' }

const cases: readonly Case[] = [
  {
    word: 'messages',
    policy: {
      variables: [
        { name: 'size', expression: 'has(object.data) ? object.data.size() : 0' },
        { name: 'fails', expression: '1 / 0' },
      ],
      validations: [
        probe,
        { expression: 'variables.size < 3', messageExpression: '"it has " + string(variables.size) + " entries"' },
        { expression: '!("m" in object.data)', message: ' a message ', reason: 'Forbidden' },
        { expression: '!("e" in object.data)', reason: 'RequestEntityTooLarge' },
        { expression: '!("l" in object.data)', messageExpression: '"a\\nb"' },
        { expression: '!("v" in object.data) || variables.fails == 1' },
        { expression: '!("d" in object.data) || object.data.d.size() / 0 == 1' },
        { expression: '!("k" in object.data) || object.data.nothing == ""' },
      ],
    },
    tries: ['m', 'e', 'l', 'v', 'd', 'k', 'x']
      .map((key) => configMap(key, { [key]: 'x' }))
      .concat([configMap('three', { a: '', b: '', c: '' })]),
  },
  {
    word: 'inputs',
    policy: {
      validations: [
        probe,
        { expression: 'request.operation == "CREATE" && request.kind.kind == "ConfigMap"' },
        { expression: 'request.name == object.metadata.name && request.resource.resource == "configmaps"' },
        { expression: 'request.dryRun && request.namespace == object.metadata.namespace && oldObject == null' },
        { expression: '!has(request.subResource) && request.userInfo.username != ""' },
        {
          expression: 'namespaceObject.metadata.name == request.namespace && namespaceObject.status.phase == "Active"',
        },
        { expression: 'authorizer.group("").resource("pods").namespace("a").check("create").allowed()' },
        { expression: 'authorizer.requestResource.check("delete").allowed()' },
        { expression: '!authorizer.serviceAccount("default", "default").path("/metrics").check("get").allowed()' },
      ],
    },
    tries: [configMap('a', { a: 'b' })],
  },
  {
    word: 'conditions',
    policy: {
      matchConditions: [
        { name: 'x', expression: '!("skip" in object.data)' },
        { name: 'y', expression: '"a" in object.data ? object.data.a / 1 == 2 : true' },
      ],
      validations: [probe, { expression: 'false' }],
    },
    tries: [configMap('one', { skip: '' }), configMap('two', { b: '' }), configMap('three', { a: '' })],
  },
  {
    word: 'open',
    policy: { failurePolicy: 'Ignore', validations: [probe, { expression: 'object.data.a == "b"' }] },
    tries: [configMap('one', { b: '' }), configMap('two', { a: '' })],
  },
  {
    word: 'params',
    policy: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [
        probe,
        { expression: 'object.data.a != params.data.not', messageExpression: '"not " + params.data.not' },
      ],
    },
    binding: { paramRef: { name: 'param-one', parameterNotFoundAction: 'Deny' } },
    before: [configMap('param-one', { not: 'this' })],
    tries: [configMap('one', { a: 'this' }), configMap('two', { a: 'that' })],
  },
  {
    word: 'absent',
    policy: { paramKind: { apiVersion: 'v1', kind: 'ConfigMap' }, validations: [probe] },
    binding: { paramRef: { name: 'nowhere', parameterNotFoundAction: 'Deny' } },
    tries: [configMap('one', { a: 'this' })],
  },
  {
    word: 'warnings',
    policy: { validations: [probe, { expression: '!("a" in object.data)', message: 'no a' }] },
    binding: { validationActions: ['Warn', 'Audit'] },
    tries: [configMap('one', { a: 'this' }), configMap('two', { b: 'this' })],
  },
]

export const policyRows: readonly Row[] = [
  ...specs.map(([about, spec], i) =>
    row(`policy: ${about}`, async (session) => {
      const body = policy(`policy-${String(i)}.$ID`, spec)
      await session.send('POST', `${policiesPath}?dryRun=All`, { body })
    }),
  ),
  ...cases.map(({ word, before = [], tries, ...one }) =>
    row(`policy in effect: ${word}`, async (session) => {
      const name = `${word}.$ID`
      const match = { ...rulesFor(['configmaps']), objectSelector: { matchLabels: { about: word } } }
      for (const body of before) await session.send('POST', configMaps, { body })
      await session.send('POST', policiesPath, {
        body: policy(name, { ...one.policy, matchConstraints: match }),
        quiet: true,
      })
      await session.send('POST', bindingsPath, { body: binding(name, one.binding ?? {}), quiet: true })
      if (one.binding?.['validationActions'] === undefined)
        await session.untilRefused(configMaps, configMap('probe', { probe: '' }, { about: word }))
      else await session.untilWarned(configMaps, configMap('probe', { probe: '' }, { about: word }))
      for (const object of tries) {
        const body = { ...object, metadata: { ...(object['metadata'] as JsonObject), labels: { about: word } } }
        await session.send('POST', `${configMaps}?dryRun=All`, { body })
      }
    }),
  ),
]
