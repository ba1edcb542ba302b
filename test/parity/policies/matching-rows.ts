// The requests that ValidatingAdmissionPolicies match, and the input that they get.
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { Session } from '#test/parity/support/session.ts'

const group = '/apis/admissionregistration.k8s.io/v1'
const apiVersion = 'admissionregistration.k8s.io/v1'
const namespacePath = '/api/v1/namespaces/$NS'
const configMaps = `${namespacePath}/configmaps`
const apps = '/apis/apps/v1/namespaces/$NS'

type Rule = JsonObject & { apiGroups: string[] }

const rule = (apiGroup: string, resources: readonly string[], operations: readonly string[] = ['*']): Rule => ({
  ...{ apiGroups: [apiGroup], apiVersions: ['v1'] },
  ...{ operations: [...operations], resources: [...resources] },
})

/** Every policy refuses this, which shows that it is in effect. */
const probeRule = rule('', ['configmaps'], ['CREATE'])
const probeOf = (word: string, labels: JsonObject): JsonObject => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: `${word}-probe`, labels } },
})

interface Case {
  readonly word: string
  readonly match: JsonObject
  readonly rules: readonly Rule[]
  /** Refused where it is false. */
  readonly expression?: string
  readonly message?: string
  readonly conditions?: readonly string[]
  readonly params?: JsonObject
  readonly binding?: JsonObject
  readonly labels?: JsonObject
  readonly prepare?: (session: Session) => Promise<void>
  readonly tries: (session: Session) => Promise<void>
}

const named = (
  kind: string,
  version: string,
  name: string,
  rest: JsonObject = {},
  labels: JsonObject = {},
): JsonObject => ({
  ...{ apiVersion: version, kind, metadata: { name, labels } },
  ...rest,
})

const container = { name: 'a', image: 'i' }
const pod = (name: string): JsonObject => named('Pod', 'v1', name, { spec: { containers: [container] } })

function deployment(name: string): JsonObject {
  const labels = { app: name }
  const template = { metadata: { labels }, spec: { containers: [container] } }
  return named('Deployment', 'apps/v1', name, { spec: { replicas: 1, selector: { matchLabels: labels }, template } })
}

/** What the policy sees, in the refusal. */
const showing = (...what: readonly string[]): string => what.map((one) => `string(${one})`).join(' + " " + ')

const cases: readonly Case[] = [
  {
    word: 'excluded',
    rules: [rule('', ['configmaps', 'secrets'])],
    match: {
      excludeResourceRules: [
        rule('', ['secrets'], ['CREATE']),
        { ...rule('', ['configmaps']), resourceNames: ['excluded-name'] },
      ],
    },
    async tries(session) {
      for (const name of ['excluded-name', 'excluded-other'])
        await session.send('POST', `${configMaps}?dryRun=All`, { body: named('ConfigMap', 'v1', name) })
      await session.send('POST', `${namespacePath}/secrets?dryRun=All`, { body: named('Secret', 'v1', 'excluded-a') })
    },
  },
  {
    word: 'objects',
    rules: [rule('', ['configmaps'])],
    match: { objectSelector: { matchExpressions: [{ key: 'tier', operator: 'In', values: ['a', 'b'] }] } },
    labels: { tier: 'a' },
    async tries(session) {
      for (const tier of ['a', 'b', 'c'])
        await session.send('POST', `${configMaps}?dryRun=All`, {
          body: named('ConfigMap', 'v1', `objects-${tier}`, {}, { tier }),
        })
    },
  },
  {
    word: 'namespaces',
    rules: [rule('', ['configmaps', 'namespaces'])],
    match: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': '$NS' } } },
    async tries(session) {
      await session.send('POST', `${configMaps}?dryRun=All`, { body: named('ConfigMap', 'v1', 'namespaces-a') })
      await session.send('POST', '/api/v1/namespaces/default/configmaps?dryRun=All', {
        body: named('ConfigMap', 'v1', 'namespaces-a'),
      })
      await session.patch(`${namespacePath}?dryRun=All`, { metadata: { labels: { a: 'b' } } })
    },
    conditions: ['request.name.startsWith("namespaces-") || request.resource.resource == "namespaces"'],
  },
  {
    word: 'versions',
    rules: [{ ...rule('autoscaling', ['horizontalpodautoscalers']), apiVersions: ['v2'] }],
    match: { matchPolicy: 'Equivalent' },
    message: showing(
      'request.kind.version',
      'request.requestKind.version',
      'object.apiVersion',
      'has(object.spec.metrics)',
    ),
    async tries(session) {
      const spec = { maxReplicas: 2, scaleTargetRef: { kind: 'Deployment', name: 'a', apiVersion: 'apps/v1' } }
      for (const version of ['v1', 'v2'])
        await session.send('POST', `/apis/autoscaling/${version}/namespaces/$NS/horizontalpodautoscalers?dryRun=All`, {
          body: named('HorizontalPodAutoscaler', `autoscaling/${version}`, 'versions-a', { spec }),
        })
    },
  },
  {
    word: 'exact',
    rules: [{ ...rule('autoscaling', ['horizontalpodautoscalers']), apiVersions: ['v2'] }],
    match: { matchPolicy: 'Exact' },
    async tries(session) {
      const spec = { maxReplicas: 2, scaleTargetRef: { kind: 'Deployment', name: 'a', apiVersion: 'apps/v1' } }
      await session.send('POST', '/apis/autoscaling/v1/namespaces/$NS/horizontalpodautoscalers?dryRun=All', {
        body: named('HorizontalPodAutoscaler', 'autoscaling/v1', 'exact-a', { spec }),
      })
    },
  },
  {
    word: 'changes',
    rules: [rule('', ['configmaps'], ['UPDATE', 'DELETE'])],
    match: {},
    message: showing(
      'request.operation',
      'has(request.name) ? request.name : "-"',
      'object == null',
      'oldObject.data.a',
      'request.options.kind',
      'object == null ? "none" : object.data.a',
    ),
    async prepare(session) {
      const body = named('ConfigMap', 'v1', 'changes-a', { data: { a: 'old' } }, { about: 'changes' })
      await session.send('POST', configMaps, { body })
    },
    async tries(session) {
      await session.patch(`${configMaps}/changes-a`, { data: { a: 'new' } })
      await session.delete(`${configMaps}/changes-a`)
      await session.delete(`${configMaps}?labelSelector=about%3Dchanges`)
    },
    conditions: [
      'request.operation == "CREATE" || (has(oldObject.metadata.labels) && "about" in oldObject.metadata.labels)',
    ],
  },
  {
    word: 'selected-params',
    rules: [rule('', ['configmaps'], ['CREATE'])],
    match: {},
    params: { apiVersion: 'v1', kind: 'Secret' },
    binding: { paramRef: { selector: { matchLabels: { param: 'selected' } }, parameterNotFoundAction: 'Deny' } },
    expression: 'object.metadata.name != params.metadata.name',
    message: '"not " + params.metadata.name',
    async prepare(session) {
      for (const name of ['selected-params-one', 'selected-params-probe'])
        await session.send('POST', `${namespacePath}/secrets`, {
          body: named('Secret', 'v1', name, {}, { param: 'selected' }),
        })
    },
    async tries(session) {
      for (const name of ['one', 'two'])
        await session.send('POST', `${configMaps}?dryRun=All`, {
          body: named('ConfigMap', 'v1', `selected-params-${name}`),
        })
    },
  },
  {
    word: 'cluster-params',
    rules: [rule('', ['configmaps'], ['CREATE'])],
    match: {},
    params: { apiVersion: 'scheduling.k8s.io/v1', kind: 'PriorityClass' },
    binding: { paramRef: { name: 'system-node-critical', parameterNotFoundAction: 'Deny' } },
    message: showing('params.value', 'params.kind', 'params.apiVersion'),
    async tries(session) {
      await session.send('POST', `${configMaps}?dryRun=All`, { body: named('ConfigMap', 'v1', 'cluster-params-a') })
    },
  },
  {
    word: 'unused-params',
    rules: [rule('', ['configmaps'], ['CREATE'])],
    match: {},
    params: { apiVersion: 'v1', kind: 'Secret' },
    expression: 'params != null',
    message: '"no params"',
    async tries(session) {
      await session.send('POST', `${configMaps}?dryRun=All`, { body: named('ConfigMap', 'v1', 'unused-params-a') })
    },
  },
  {
    word: 'scales',
    rules: [rule('apps', ['deployments/scale'])],
    match: {},
    message: showing(
      'request.kind.kind',
      'request.subResource',
      'object.kind',
      'object.spec.replicas',
      'oldObject.spec.replicas',
      'has(object.spec.template)',
      'request.resource.resource',
    ),
    async prepare(session) {
      await session.send('POST', `${apps}/deployments`, { body: deployment('scales-a'), quiet: true })
    },
    async tries(session) {
      await session.patch(`${apps}/deployments/scales-a/scale?dryRun=All`, { spec: { replicas: 3 } })
    },
  },
  {
    word: 'statuses',
    rules: [rule('apps', ['deployments/status'])],
    match: {},
    message: showing('request.kind.kind', 'request.subResource', 'object.kind', 'object.status.replicas'),
    async prepare(session) {
      await session.send('POST', `${apps}/deployments`, { body: deployment('statuses-a'), quiet: true })
    },
    async tries(session) {
      await session.patch(`${apps}/deployments/statuses-a/status?dryRun=All`, { status: { replicas: 7 } })
    },
  },
  {
    word: 'parts',
    rules: [rule('', ['pods/eviction', 'pods/binding', 'pods/exec', 'pods/attach', 'pods/portforward'])],
    match: {},
    message: showing(
      'request.operation',
      'request.kind.kind',
      'request.subResource',
      'request.name',
      'object.kind',
      'has(object.command) ? object.command[0] : "-"',
      'has(object.target) ? object.target.name : "-"',
      'oldObject == null',
    ),
    async prepare(session) {
      await session.send('POST', `${namespacePath}/pods`, { body: pod('parts-a'), quiet: true })
    },
    async tries(session) {
      const path = `${namespacePath}/pods/parts-a`
      await session.send('POST', `${path}/eviction`, { body: named('Eviction', 'policy/v1', 'parts-a') })
      await session.send('POST', `${path}/binding`, {
        body: named('Binding', 'v1', 'parts-a', { target: { kind: 'Node', name: 'n' } }),
      })
      await session.send('POST', `${path}/exec?command=ls&container=a&stdout=true`)
      await session.send('POST', `${path}/attach?container=a&stdout=true`)
      await session.send('POST', `${path}/portforward?ports=80`)
    },
  },
  {
    word: 'questions',
    rules: [rule('', ['configmaps'], ['CREATE'])],
    match: {},
    expression: `object.metadata.name == "questions-a" && [
      authorizer.group("").resource("pods").fieldSelector("spec.nodeName=a").labelSelector("a in (b)").check("list").allowed(),
      authorizer.serviceAccount("default", "none").group("").resource("pods").labelSelector("a=b").check("list").allowed(),
      authorizer.serviceAccount("default", "none").group("").resource("pods").labelSelector("a==,b").check("list").allowed(),
      authorizer.serviceAccount("default", "none").group("").resource("pods").labelSelector("a==,b").check("list").errored(),
      authorizer.group("").resource("pods").fieldSelector("a==,b").check("list").errored(),
    ] == [true, false, false, false, false]`,
    async tries(session) {
      for (const name of ['questions-a', 'questions-b'])
        await session.send('POST', `${configMaps}?dryRun=All`, { body: named('ConfigMap', 'v1', name) })
    },
  },
  {
    word: 'hidden-namespaces',
    rules: [rule('', ['configmaps'], ['CREATE'])],
    match: {},
    conditions: ['namespaceObject == null'],
    message: showing('namespaceObject.metadata.name'),
    async tries(session) {
      await session.send('POST', `${configMaps}?dryRun=All`, { body: named('ConfigMap', 'v1', 'hidden-namespaces-a') })
    },
  },
]

async function play(session: Session, one: Case): Promise<void> {
  const { word, rules, match, expression = 'false', message, conditions = [], params, binding = {}, labels = {} } = one
  const name = `${word}.$ID`
  const own = [`request.resource.resource == "namespaces" || !has(request.name) || request.name.startsWith("${word}")`]
  await one.prepare?.(session)
  const policy = {
    ...{ apiVersion, kind: 'ValidatingAdmissionPolicy', metadata: { name } },
    spec: {
      ...(params === undefined ? {} : { paramKind: params }),
      matchConstraints: { resourceRules: [...rules, probeRule], ...match },
      matchConditions: [...own, ...conditions].map((text, index) => ({ name: `c-${String(index)}`, expression: text })),
      validations: [{ expression, ...(message === undefined ? {} : { messageExpression: message }) }],
    },
  }
  const bound = {
    ...{ apiVersion, kind: 'ValidatingAdmissionPolicyBinding', metadata: { name } },
    spec: { policyName: name, validationActions: ['Deny'], ...binding },
  }
  await session.send('POST', `${group}/validatingadmissionpolicies`, { body: policy, without: ['status', 'metadata'] })
  await session.send('POST', `${group}/validatingadmissionpolicybindings`, { body: bound, without: ['metadata'] })
  await session.untilRefused(configMaps, probeOf(word, labels))
  await one.tries(session)
  await session.delete(`${group}/validatingadmissionpolicybindings/${name}`, undefined, { quiet: true })
  await session.delete(`${group}/validatingadmissionpolicies/${name}`, undefined, { quiet: true })
}

export const matchingRows: readonly Row[] = cases.map((one) =>
  row(`policy matches: ${one.word}`, (session) => play(session, one)),
)
