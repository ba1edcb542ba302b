// Random webhook configurations: what is said of them when they are written, and which requests they are shown.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import type { WebhookServer } from '#test/support/webhook-server.ts'
import type { Session } from '#test/parity/support/session.ts'
import type { Case } from './compare-cases.ts'
import { diceOf, type Dice } from './dice.ts'

const group = '/apis/admissionregistration.k8s.io/v1'
const kinds = ['Mutating', 'Validating'] as const
type Kind = (typeof kinds)[number]

const strings = (dice: Dice, good: readonly [string, ...string[]], bad: readonly [string, ...string[]]): string[] => {
  const all = dice.some(good)
  if (all.length === 0 && !dice.once(6)) all.push(dice.pick(good))
  return dice.once(8) ? [...all, dice.pick(bad)] : all
}

const ruleOf = (dice: Dice): JsonObject => ({
  ...{ operations: strings(dice, ['CREATE', 'UPDATE', 'DELETE'], ['*', 'CONNECT', 'PATCH', '']) },
  ...{ apiGroups: strings(dice, ['', 'apps'], ['*', 'APPS']), apiVersions: strings(dice, ['v1'], ['*', 'v2', '']) },
  resources: strings(
    dice,
    ['configmaps', 'deployments', 'deployments/scale'],
    ['*', '*/*', 'a/*', '*/scale', '', 'configmaps/'],
  ),
  ...(dice.once(3) ? { scope: dice.pick(['*', 'Namespaced', 'Cluster', 'Other']) } : {}),
})

function selectorOf(dice: Dice): JsonObject {
  const key = dice.pick(['a', 'b', 'a/b/c', 'example.com/a', ''])
  const operator = dice.pick(['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt'])
  const values = dice.some(['one', 'two', 'not valid'])
  return {
    ...(dice.once(2) ? { matchLabels: { [dice.pick(['a', 'b'])]: dice.pick(['one', 'two']) } } : {}),
    ...(dice.once(2) ? { matchExpressions: [{ key, operator, ...(dice.once(4) ? {} : { values }) }] } : {}),
  }
}

const conditions = [
  'object.metadata.name.startsWith("a")',
  'request.operation == "CREATE"',
  'has(object.metadata.labels)',
  'object.metadata.labels.a == "one"',
  'oldObject == null',
  'request.userInfo.username != ""',
  'request.resource.resource in ["configmaps", "deployments"]',
  'authorizer.group("").resource("pods").check("get").allowed()',
  '1',
  'object.',
  'unknown == 1',
  'size(object.metadata.name) > 3 && request.namespace != "x"',
] as const

function clientConfigOf(dice: Dice): JsonObject {
  const service = { namespace: 'default', name: dice.pick(['hook', '', 'Hook']) }
  return dice.pick<() => JsonObject>([
    () => ({
      url: dice.pick(['https://127.0.0.1:1/a', 'http://127.0.0.1/a', 'https://a/?b=c', 'https://u@a/', '%', '']),
    }),
    () => ({ service: { ...service, ...(dice.once(2) ? { path: dice.pick(['/a', 'a', '/a//b', '/']) } : {}) } }),
    () => ({ service: { ...service, port: dice.pick([443, 0, 70_000]) } }),
    () => ({ service, url: 'https://a' }),
    () => ({}),
  ])()
}

/** A webhook of which now and then a field is missing or wrong. */
function webhookOf(dice: Dice, index: number): JsonObject {
  const often = (name: string, value: () => JsonValue): JsonObject => (dice.once(8) ? {} : { [name]: value() })
  const seldom = (name: string, value: () => JsonValue): JsonObject => (dice.once(3) ? { [name]: value() } : {})
  return {
    ...often('name', () => (dice.once(8) ? dice.pick(['a', 'A.b.c', '']) : `hook-${index}.example.com`)),
    ...often('clientConfig', () => clientConfigOf(dice)),
    ...often('sideEffects', () => dice.pick(['None', 'NoneOnDryRun', 'Some', 'Unknown'])),
    ...often('admissionReviewVersions', () => strings(dice, ['v1'], ['v1beta1', 'v2', ''])),
    ...often('rules', () => [ruleOf(dice), ...(dice.once(3) ? [ruleOf(dice)] : [])]),
    ...seldom('failurePolicy', () => dice.pick(['Fail', 'Ignore', 'Other'])),
    ...seldom('matchPolicy', () => dice.pick(['Exact', 'Equivalent', 'Other'])),
    ...seldom('timeoutSeconds', () => dice.pick([1, 30, 0, 31, -1])),
    ...seldom('objectSelector', () => selectorOf(dice)),
    ...seldom('namespaceSelector', () => selectorOf(dice)),
    ...seldom('reinvocationPolicy', () => dice.pick(['Never', 'IfNeeded', 'Other'])),
    ...seldom('matchConditions', () =>
      dice.some(conditions).map((expression, i) => ({ name: dice.once(9) ? 'not valid' : `c${i}`, expression })),
    ),
  }
}

const configurationOf = (kind: Kind, name: string, webhooks: readonly JsonValue[]): JsonObject => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: `${kind}WebhookConfiguration`,
  metadata: { name },
  webhooks: [...webhooks],
})
const pathOf = (kind: Kind): string => `${group}/${kind.toLowerCase()}webhookconfigurations`

/** A configuration, as a dry run. */
export function configurationCase(seed: number): Case {
  return {
    title: `a webhook configuration, seed ${seed}`,
    run: async (session) => {
      const dice = diceOf(seed)
      const kind = dice.pick(kinds)
      const webhooks = Array.from({ length: 1 + dice.below(2) }, (_, i) => webhookOf(dice, i))
      const body = configurationOf(kind, `made-${seed}-$ID`, webhooks)
      await session.send('POST', `${pathOf(kind)}?dryRun=All`, { body })
    },
  }
}

/** A configuration that is in force: each of its webhooks adds an annotation to what it is shown. */
export async function installWebhooks(
  sessions: readonly Session[],
  hooks: WebhookServer,
  { seed, count }: { seed: number; count: number },
): Promise<void> {
  const dice = diceOf(seed)
  const markers = Array.from({ length: count }, (_, i) => matchingWebhook(dice, hooks, i))
  // The last one shows that all are in force.
  const ready = {
    ...matchingWebhook(diceOf(0), hooks, count),
    rules: [{ operations: ['CREATE'], apiGroups: [''], apiVersions: ['v1'], resources: ['configmaps'] }],
    ...{ objectSelector: { matchLabels: { ready: 'yes' } }, namespaceSelector: {}, matchConditions: [] },
  }
  const body = configurationOf('Mutating', 'made-$ID', [...markers, ready])
  const probe = { metadata: { name: 'ready', labels: { ready: 'yes', a: 'one' }, annotations: { by: 'test' } } }
  for (const session of sessions) {
    const created = await session.send('POST', pathOf('Mutating'), { body, quiet: true })
    if (created.status !== 201) throw new Error(JSON.stringify(created.body))
    const maps = '/api/v1/namespaces/$NS/configmaps?dryRun=All'
    await session.untilAnswered('POST', maps, probe, ({ body: answer }) =>
      JSON.stringify(answer).includes(`"h${count}"`),
    )
  }
}

/** Of valid fields only. */
function matchingWebhook(dice: Dice, hooks: WebhookServer, index: number): JsonObject {
  const patch = JSON.stringify([{ op: 'add', path: `/metadata/annotations/h${index}`, value: 'seen' }])
  const { url, caBundle } = hooks.at(`/patch/${Buffer.from(patch).toString('base64url')}`)
  const label = (): JsonObject => ({ matchLabels: { [dice.pick(['a', 'b'])]: dice.pick(['one', 'two']) } })
  const expression = (): JsonObject => ({
    matchExpressions: [{ key: dice.pick(['a', 'b']), operator: dice.pick(['Exists', 'DoesNotExist']) }],
  })
  const valid = conditions.slice(0, 8).concat(conditions.slice(-1))
  return {
    name: `hook-${index}.example.com`,
    clientConfig: { url, caBundle },
    ...{ sideEffects: 'None', admissionReviewVersions: ['v1'], timeoutSeconds: 30 },
    failurePolicy: dice.pick(['Fail', 'Ignore', 'Ignore']),
    rules: [
      {
        operations: dice.once(4) ? ['*'] : ['CREATE', ...dice.some(['UPDATE'])],
        apiGroups: dice.pick([['*'], [''], ['apps'], ['', 'apps']]),
        apiVersions: dice.pick([['*'], ['v1'], ['v1beta1']]),
        resources: dice.pick([
          ['*'],
          ['*/*'],
          ['configmaps'],
          ['deployments'],
          ['deployments/*'],
          ['configmaps', '*/scale'],
        ]),
        scope: dice.pick(['*', '*', 'Namespaced', 'Cluster']),
      },
    ],
    matchPolicy: dice.pick(['Exact', 'Equivalent']),
    reinvocationPolicy: dice.pick(['Never', 'IfNeeded']),
    objectSelector: dice.pick<() => JsonObject>([() => ({}), label, expression])(),
    namespaceSelector: dice.once(4) ? expression() : {},
    matchConditions: dice.once(2)
      ? dice
          .some(valid)
          .slice(0, 2)
          .map((text, i) => ({ name: `c${i}`, expression: text }))
      : [],
  }
}

/** A request that such a configuration may be asked about, as a dry run: its annotations tell who was. */
export function matchedCase(seed: number): Case {
  return {
    title: `a request that webhooks are shown, seed ${seed}`,
    run: async (session) => {
      const dice = diceOf(seed)
      const labels = Object.fromEntries(dice.some(['a', 'b']).map((key) => [key, dice.pick(['one', 'two', 'three'])]))
      const name = `${dice.pick(['a', 'abcd', 'b'])}-${seed}`
      const metadata = { name, annotations: { by: 'test' }, ...(dice.once(4) ? {} : { labels }) }
      const spec = {
        selector: { matchLabels: { app: 'web' } },
        template: {
          metadata: { labels: { app: 'web' } },
          spec: { containers: [{ name: 'main', image: 'nginx' }] },
        },
      }
      const isMap = dice.once(2)
      const path = isMap ? '/api/v1/namespaces/$NS/configmaps' : '/apis/apps/v1/namespaces/$NS/deployments'
      const body = isMap ? { metadata } : { metadata, spec }
      await session.send('POST', `${path}?dryRun=All`, { body, without: ['metadata.managedFields'] })
    },
  }
}
