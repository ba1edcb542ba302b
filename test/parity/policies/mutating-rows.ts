// MutatingAdmissionPolicies: how they change objects, in which order, and what they refuse.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { Session } from '#test/parity/support/session.ts'

const group = '/apis/admissionregistration.k8s.io/v1beta1'
const apiVersion = 'admissionregistration.k8s.io/v1beta1'
const configMaps = '/api/v1/namespaces/$NS/configmaps'

const apply = (expression: string): JsonObject => ({
  patchType: 'ApplyConfiguration',
  applyConfiguration: { expression },
})
const patch = (expression: string): JsonObject => ({ patchType: 'JSONPatch', jsonPatch: { expression } })

/** A mutation that adds a label, which shows that the policy is in effect. */
const marking = (name: string): JsonObject =>
  apply(`Object{metadata: Object.metadata{labels: {"effective-${name}": "true"}}}`)

function policy(name: string, about: string, spec: JsonObject): JsonObject {
  const { match = {}, ...rest } = spec
  return {
    ...{ apiVersion, kind: 'MutatingAdmissionPolicy', metadata: { name: `${name}.$ID` } },
    spec: {
      matchConstraints: {
        resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['*'], resources: ['configmaps'] }],
        objectSelector: { matchLabels: { about } },
        ...(match as JsonObject),
      },
      reinvocationPolicy: 'Never',
      ...rest,
    },
  }
}

const binding = (name: string, spec: JsonObject = {}): JsonObject => ({
  ...{ apiVersion, kind: 'MutatingAdmissionPolicyBinding', metadata: { name: `${name}.$ID` } },
  spec: { policyName: `${name}.$ID`, ...spec },
})

const configMap = (name: string, about: string, data: JsonObject = {}): JsonObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { about } } },
  data,
})

interface Case {
  readonly word: string
  /** By name; they run in this order. */
  readonly policies: Readonly<Record<string, JsonObject>>
  readonly bindings?: Readonly<Record<string, JsonObject>>
  readonly before?: readonly JsonObject[]
  readonly tries: readonly JsonObject[]
  /** By index in `tries`: the policies that mutate or refuse this object. Default: all of them, the first object. */
  readonly effects?: Readonly<Record<number, readonly string[]>>
  /** Where the objects are created. */
  readonly path?: string
}

const deployments = '/apis/apps/v1/namespaces/$NS/deployments'
const appsRule = [
  { apiGroups: ['apps'], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: ['deployments'] },
]

function deployment(name: string, about: string, containers: readonly JsonObject[]): JsonObject {
  return {
    ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, labels: { about } } },
    spec: {
      selector: { matchLabels: { app: 'a' } },
      template: { metadata: { labels: { app: 'a' } }, spec: { containers: [...containers] } },
    },
  }
}

const cases: readonly Case[] = [
  {
    word: 'configurations',
    policies: {
      configurations: {
        mutations: [
          marking('configurations'),
          apply('Object{data: {"copied": string(object.metadata.name), "size": string(object.data.size())}}'),
          apply('Object{data: {"again": string(object.data.copied) + "!", "operation": request.operation}}'),
        ],
      },
    },
    tries: [configMap('one', 'configurations', { a: 'b' }), configMap('two', 'configurations', { copied: 'x' })],
  },
  {
    word: 'containers',
    policies: {
      containers: {
        match: { resourceRules: appsRule },
        mutations: [
          marking('containers'),
          apply(
            `Object{spec: Object.spec{replicas: 3, template: Object.spec.template{spec: Object.spec.template.spec{
              containers: object.spec.template.spec.containers.map(c, Object.spec.template.spec.containers{
                name: c.name, env: [Object.spec.template.spec.containers.env{name: "ADDED", value: c.image}]})
                + [Object.spec.template.spec.containers{name: "sidecar", image: "side"}]
            }}}}`,
          ),
        ],
      },
    },
    path: deployments,
    tries: [
      deployment('one', 'containers', [{ name: 'a', image: 'i', env: [{ name: 'OLD', value: '1' }] }]),
      deployment('two', 'containers', [
        { name: 'a', image: 'i' },
        { name: 'sidecar', image: 'own' },
      ]),
    ],
  },
  {
    word: 'wrong-configurations',
    policies: {
      'wrong-configurations': {
        match: { resourceRules: appsRule },
        mutations: [
          marking('wrong-configurations'),
          apply('object.metadata.name == "one" ? Object{spec: Object.spec{nothing: 1}} : Object{}'),
          apply('object.metadata.name == "two" ? Object{spec: Object.spec{replicas: "a"}} : Object{}'),
          apply('object.metadata.name == "three" ? Object{spec: Object.wrong{replicas: 1}} : Object{}'),
          apply('object.metadata.name == "four" ? Object{metadata: Object.metadata{name: "other"}} : Object{}'),
          apply('object.metadata.name == "five" ? Object{metadata: Object.metadata{namespace: "other"}} : Object{}'),
          apply(
            `object.metadata.name == "six" ? Object{spec: Object.spec{selector: Object.spec.selector{matchLabels: {"a": "b"}}}}
              : Object{}`,
          ),
          apply(
            `object.metadata.name == "seven" ? Object{spec: Object.spec{template: Object.spec.template{
              spec: Object.spec.template.spec{containers: [Object.spec.template.spec.containers{name: "a", command: ["x"]}]}}}}
              : Object{}`,
          ),
          apply('object.metadata.name == "eight" ? Object{spec: Object.spec{replicas: 1 / 0}} : Object{}'),
          apply('object.metadata.name == "nine" ? Object{spec: Object.spec{replicas: -1}} : Object{}'),
        ],
      },
    },
    path: deployments,
    tries: ['one', 'two', 'three', 'four', 'five', 'six', 'seven', 'eight', 'nine', 'ten'].map((name) =>
      deployment(name, 'wrong-configurations', [{ name: 'a', image: 'i' }]),
    ),
  },
  {
    word: 'patches',
    policies: {
      patches: {
        mutations: [
          marking('patches'),
          patch(
            `has(object.data) && "test" in object.data
              ? [JSONPatch{op: "test", path: "/data/test", value: "yes"}, JSONPatch{op: "add", path: "/data/tested", value: "1"}]
              : [JSONPatch{op: "add", path: "/metadata/annotations", value: {"a/b": "c"}},
                 JSONPatch{op: "add", path: "/metadata/annotations/" + jsonpatch.escapeKey("x/y~z"), value: "d"}]`,
          ),
          patch(
            `!has(object.data) ? []
              : "missing" in object.data ? [JSONPatch{op: "remove", path: "/data/nothing"}]
              : "unknown" in object.data ? [JSONPatch{op: "add", path: "/nothing", value: 1}]
              : "number" in object.data ? [JSONPatch{op: "add", path: "/data/a", value: 1}]
              : "move" in object.data ? [JSONPatch{op: "move", from: "/data/move", path: "/data/moved"}]
              : "copy" in object.data ? [JSONPatch{op: "copy", from: "/data/copy", path: "/data/copied"}]
              : "replace" in object.data ? [JSONPatch{op: "replace", path: "/data", value: Object.data{a: "b"}}]
              : "operation" in object.data ? [JSONPatch{op: "none", path: "/data"}]
              : []`,
          ),
        ],
      },
    },
    tries: [
      configMap('none', 'patches'),
      ...[
        ...['missing', 'unknown', 'number', 'move', 'copy', 'replace', 'operation'].map((key) => ({ [key]: 'x' })),
        ...[{ test: 'yes' }, { test: 'no' }],
      ].map((data, index) => configMap(`one-${String(index)}`, 'patches', data)),
    ],
  },
  {
    word: 'order',
    policies: {
      'order-a': {
        mutations: [
          marking('order-a'),
          apply('Object{data: {"seen": has(object.data) && "b" in object.data ? "b" : "-"}}'),
        ],
        reinvocationPolicy: 'IfNeeded',
      },
      'order-b': { mutations: [apply('Object{data: {"b": "1"}}'), marking('order-b')] },
      'order-c': {
        reinvocationPolicy: 'IfNeeded',
        mutations: [
          marking('order-c'),
          apply('Object{data: {"count": "count" in object.data ? object.data.count + "+" : "+"}}'),
        ],
      },
      'order-d': {
        mutations: [
          marking('order-d'),
          apply('Object{data: {"once": "once" in object.data ? object.data.once + "+" : "+"}}'),
        ],
      },
    },
    tries: [configMap('one', 'order', { a: '' })],
  },
  {
    word: 'conditions',
    policies: {
      conditions: {
        matchConditions: [
          { name: 'x', expression: '!("skip" in object.data)' },
          { name: 'y', expression: '"a" in object.data ? object.data.a / 1 == 2 : true' },
          { name: 'z', expression: 'namespaceObject == null' },
        ],
        mutations: [marking('conditions')],
      },
      'conditions-open': {
        failurePolicy: 'Ignore',
        matchConditions: [{ name: 'y', expression: '"o" in object.data ? object.data.o / 1 == 2 : true' }],
        mutations: [
          apply('Object{data: {"failed": "f" in object.data ? object.data.nothing : "-"}}'),
          apply('Object{data: {"opened": "yes"}}'),
          marking('conditions-open'),
        ],
      },
    },
    effects: { 0: ['conditions-open'], 2: ['conditions'] },
    tries: ['skip', 'a', 'b', 'o', 'f'].map((key) => configMap(key, 'conditions', { [key]: '' })),
  },
  {
    word: 'params',
    policies: {
      params: {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        variables: [
          { name: 'key', expression: 'params.metadata.name' },
          { name: 'data', expression: '{variables.key: params.data.value}' },
        ],
        mutations: [marking('params'), apply('Object{data: variables.data}')],
      },
      'params-absent': {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        matchConditions: [{ name: 'x', expression: '"absent" in object.data' }],
        mutations: [marking('params-absent')],
      },
      'params-kind': {
        match: { objectSelector: { matchLabels: { about: 'params-kind' } } },
        paramKind: { apiVersion: 'none.example.com/v1', kind: 'None' },
        mutations: [marking('params-kind')],
      },
    },
    bindings: {
      params: { paramRef: { selector: { matchLabels: { param: 'yes' } }, parameterNotFoundAction: 'Deny' } },
      'params-absent': { paramRef: { name: 'nowhere', parameterNotFoundAction: 'Allow' } },
      'params-kind': { paramRef: { name: 'nowhere', parameterNotFoundAction: 'Deny' } },
    },
    effects: { 0: ['params'] },
    before: ['m-one', 'm-two'].map((name) => ({
      ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { param: 'yes' } } },
      data: { value: `of-${name}` },
    })),
    tries: [
      configMap('one', 'params', { a: '' }),
      configMap('two', 'params', { absent: '' }),
      configMap('three', 'params-kind', { a: '' }),
    ],
  },
  {
    word: 'denied-params',
    policies: {
      'denied-params': {
        paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
        mutations: [apply('Object{}')],
      },
    },
    bindings: { 'denied-params': { paramRef: { name: 'nowhere', parameterNotFoundAction: 'Deny' } } },
    tries: [configMap('one', 'denied-params')],
  },
  {
    word: 'authorizers',
    policies: {
      authorizers: {
        mutations: [
          marking('authorizers'),
          apply(
            `Object{data: {
              "self": string(authorizer.requestResource.check("delete").allowed()),
              "account": string(authorizer.serviceAccount("default", "default").path("/metrics").check("get").allowed())}}`,
          ),
        ],
      },
    },
    tries: [configMap('one', 'authorizers')],
  },
]

/** Waits until the policies have mutated the object, or it is refused. */
async function untilEffective(
  session: Session,
  path: string,
  probe: JsonObject,
  names: readonly string[],
): Promise<void> {
  await session.untilAnswered('POST', `${path}?dryRun=All`, probe, ({ status, body }) => {
    if (status >= 400) return true
    const { labels = {} } = (body as JsonObject)['metadata'] as { labels?: Record<string, string> }
    return names.every((name) => `effective-${name}` in labels)
  })
}

export const mutatingRows: readonly Row[] = cases.map(
  ({ word, policies, bindings = {}, before = [], tries, effects, path = configMaps }) =>
    row(`mutating policy: ${word}`, async (session) => {
      for (const body of before) await session.send('POST', configMaps, { body })
      for (const [name, spec] of Object.entries(policies)) {
        await session.send('POST', `${group}/mutatingadmissionpolicies`, { body: policy(name, word, spec) })
        await session.send('POST', `${group}/mutatingadmissionpolicybindings`, {
          body: binding(name, bindings[name] ?? {}),
        })
      }
      for (const [index, names] of Object.entries(effects ?? { 0: Object.keys(policies) }))
        await untilEffective(session, path, tries[Number(index)] ?? {}, names)
      for (const body of tries) await session.send('POST', `${path}?dryRun=All`, { body })
    }),
)
