// The requests about admission webhooks that both servers get. Both call the same webhook server.
import { waitFor } from '#test/support/index.ts'
import type { WebhookServer } from '#test/support/webhook-server.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import type { Manifest, Session } from '#test/parity/support/session.ts'

type Json = Record<string, unknown>
type Kind = 'Mutating' | 'Validating'

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')
const everything = { operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*/*'] }
const annotate = (name: string, value: string): Json => ({
  op: 'add',
  path: `/metadata/annotations/${name}`,
  value,
})

/** The rows; `server` is started before they run. */
export function webhookRows(server: () => WebhookServer): readonly Row[] {
  /**
   * Creates a configuration whose webhooks see only objects with the label `row: word`, and waits until it is in force.
   */
  const configure = async (
    session: Session,
    kind: Kind,
    word: string,
    webhooks: readonly (Json & { path: string })[],
  ): Promise<void> => {
    const common = { sideEffects: 'None', admissionReviewVersions: ['v1'], rules: [everything], timeoutSeconds: 10 }
    const all = webhooks.map(({ path, ...webhook }, index) => ({
      name: `hook-${index}.$ID.example.com`,
      objectSelector: { matchLabels: { row: word } },
      clientConfig: server().at(path),
      ...common,
      ...webhook,
    }))
    const marker = {
      ...{ name: 'ready.$ID.example.com', clientConfig: server().at(`/ready/${word}-ready`) },
      ...{ objectSelector: { matchLabels: { ready: word } }, ...common },
    }
    const configuration = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: `${kind}WebhookConfiguration`,
      metadata: { name: `${word}-$ID` },
      webhooks: [...all, marker],
    }
    const created = await session.create(configuration, { quiet: true })
    if (created.status !== 201) throw new Error(JSON.stringify(created.body))
    const probe = { ...configMap(`${word}-ready`), metadata: { name: `${word}-ready`, labels: { ready: word } } }
    await waitFor(
      async () => (await session.create(probe as Manifest, { query: '?dryRun=All', quiet: true })).status === 400,
      { what: `the webhooks of ${word} to be in force`, deadlineMs: 10_000 },
    )
  }
  const configMap = (name: string, word = name, more: Json = {}): Manifest => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name, labels: { row: word }, annotations: { by: 'row' } },
    data: { a: '1' },
    ...more,
  })
  const maps = '/api/v1/namespaces/$NS/configmaps'

  /** One webhook, one create. */
  const creating = (title: string, kind: Kind, path: () => string, more: Json = {}, query = ''): Row =>
    row(title, async (session) => {
      const word = `row-${titleHash(title)}`
      await configure(session, kind, word, [{ path: path(), ...more }])
      await session.create(configMap(word), { query })
      await session.get(`${maps}/${word}`)
    })

  const rows: Row[] = [
    creating('tells why a webhook refused', 'Validating', () => refusing({ message: 'no', reason: 'Because' })),
    creating('tells the code of a refusal', 'Validating', () => refusing({ message: 'no', code: 409 })),
    creating('tells the details of a refusal', 'Validating', () =>
      refusing({ message: 'no', code: 422, reason: 'Invalid', details: { causes: [{ message: 'x', field: 'f' }] } }),
    ),
    creating('tells a refusal without explanation', 'Validating', () => `/answer/${encoded({ allowed: false })}`),
    creating('tells a refusal with a reason alone', 'Mutating', () => refusing({ reason: 'Because' })),
    creating('does not take a refusal for a success', 'Validating', () => refusing({ status: 'Success', code: 200 })),
    creating(
      'passes warnings on',
      'Mutating',
      () => `/answer/${encoded({ allowed: true, warnings: ['one', 'two "quoted"'] })}`,
    ),
    creating('applies a patch', 'Mutating', () => `/patch/${encoded([annotate('x', 'y')])}`),
    creating(
      'refuses a patch that does not apply',
      'Mutating',
      () => `/patch/${encoded([{ op: 'remove', path: '/x' }])}`,
    ),
    creating(
      'refuses a patch to an unknown type',
      'Mutating',
      () => `/patch/${encoded([{ op: 'add', path: '/data/b', value: 1 }])}`,
    ),
    creating(
      'drops unknown fields of a patched object',
      'Mutating',
      () => `/patch/${encoded([{ op: 'add', path: '/spec', value: {} }])}`,
    ),
    creating('validates a patched object', 'Mutating', () => `/patch/${encoded([annotate('bad~1name~1x', 'y')])}`),
    creating(
      'refuses another namespace',
      'Mutating',
      () => `/patch/${encoded([{ op: 'replace', path: '/metadata/namespace', value: 'default' }])}`,
    ),
    creating(
      'refuses a patch without its type',
      'Mutating',
      () => `/answer/${encoded({ allowed: true, patch: 'W10=' })}`,
    ),
    creating(
      'refuses a type without its patch',
      'Mutating',
      () => `/answer/${encoded({ allowed: true, patchType: 'JSONPatch' })}`,
    ),
    creating(
      'refuses a patch of a validating webhook',
      'Validating',
      () => `/answer/${encoded({ allowed: true, patchType: 'JSONPatch', patch: 'W10=' })}`,
    ),
    creating(
      'refuses an unknown patch type',
      'Mutating',
      () =>
        `/answer/${encoded({ allowed: true, patchType: 'Merge', patch: Buffer.from('[{"op":"x"}]').toString('base64') })}`,
    ),
    creating('refuses the answer to another review', 'Validating', () => `/answer/${encoded({ uid: 'other' })}`),
    creating('refuses an answer without response', 'Validating', () => `/whole/${encoded({ response: null })}`),
    creating(
      'refuses an answer of another version',
      'Validating',
      () => `/whole/${encoded({ apiVersion: 'admission.k8s.io/v1beta1' })}`,
    ),
    creating('tells that the connection was refused', 'Validating', () => '/allow', {
      clientConfig: { url: 'https://127.0.0.1:1/x' },
    }),
    creating('tells that the webhook is not there', 'Validating', () => '/status/404'),
    creating('tells that the webhook is overloaded', 'Validating', () => '/status/503'),
    creating('tells that the webhook refuses our request', 'Validating', () => '/status/400'),
    creating('tells that the webhook wants credentials', 'Validating', () => '/status/401'),
    creating('waits no longer than timeoutSeconds', 'Validating', () => '/hang', { timeoutSeconds: 1 }),
    creating('passes a hanging webhook that may fail', 'Mutating', () => '/hang', {
      timeoutSeconds: 1,
      failurePolicy: 'Ignore',
    }),
    creating('passes a broken webhook that may fail', 'Validating', () => '/status/500', { failurePolicy: 'Ignore' }),
    creating('does not pass a refusal of a webhook that may fail', 'Validating', () => refusing({ message: 'no' }), {
      failurePolicy: 'Ignore',
    }),
    creating('tells that a Service is missing', 'Validating', () => '/allow', {
      clientConfig: { service: { name: 'hook', namespace: 'nowhere', path: '/x' } },
    }),
    creating('shows a new object to mutating webhooks', 'Mutating', () => '/echo'),
    creating('shows a new object to validating webhooks', 'Validating', () => '/echo'),
    creating('shows a new object as v1beta1', 'Validating', () => '/echo', { admissionReviewVersions: ['v1beta1'] }),
    creating('shows the options of a create', 'Validating', () => '/echo', {}, '?fieldManager=me&fieldValidation=Warn'),
    creating('shows a dry run', 'Mutating', () => '/echo', { sideEffects: 'NoneOnDryRun' }, '?dryRun=All'),
    row('shows an update, a patch and a deletion', async (session) => {
      const word = 'row-changes'
      await session.create(configMap(word))
      await configure(session, 'Validating', word, [
        { path: '/echo', rules: [{ ...everything, operations: ['UPDATE', 'DELETE'] }] },
      ])
      await session.change(`${maps}/${word}`, (object) => Object.assign(object, { data: { a: '2' } }))
      await session.patch(`${maps}/${word}?fieldManager=me`, { data: { b: '1' } })
      await session.delete(`${maps}/${word}`, {
        kind: 'DeleteOptions',
        apiVersion: 'v1',
        propagationPolicy: 'Background',
      })
      await session.delete(`${maps}/${word}?gracePeriodSeconds=0`)
      await session.delete(`${maps}?labelSelector=row%3D${word}`)
      await session.get(`${maps}/${word}`)
    }),
    row('shows a deletion to mutating webhooks, which cannot change it', async (session) => {
      const word = 'row-deleted'
      await session.create(configMap(word))
      const rules = [{ ...everything, operations: ['DELETE'] }]
      await configure(session, 'Mutating', word, [{ path: `/patch/${encoded([annotate('x', 'y')])}`, rules }])
      await session.delete(`${maps}/${word}`)
    }),
    row('shows status and scale', async (session) => {
      const word = 'row-parts'
      await session.create(statefulSet(word))
      await configure(session, 'Validating', word, [
        { path: '/echo', rules: [{ ...everything, resources: ['statefulsets/status'] }] },
      ])
      await session.patch(`/apis/apps/v1/namespaces/$NS/statefulsets/${word}/status`, { status: { replicas: 2 } })
      await configure(session, 'Mutating', 'row-scale', [
        { path: '/echo', objectSelector: {}, rules: [{ ...everything, resources: ['statefulsets/scale'] }] },
      ])
      await session.patch(`/apis/apps/v1/namespaces/$NS/statefulsets/${word}/scale`, { spec: { replicas: 3 } })
      await session.delete(
        '/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations/row-scale-$ID',
        {},
        { quiet: true },
      )
    }),
    row('matches an equivalent version, and shows that one', async (session) => {
      const word = 'row-equivalent'
      const rules = [
        {
          operations: ['*'],
          apiGroups: ['autoscaling'],
          apiVersions: ['v1'],
          resources: ['horizontalpodautoscalers'],
        },
      ]
      await configure(session, 'Validating', word, [{ path: '/echo', rules }])
      await session.create(autoscaler(word))
      await session.delete(
        `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${word}-$ID`,
        {},
        {
          quiet: true,
        },
      )
      await configure(session, 'Validating', 'row-exact', [
        { path: '/echo', rules, matchPolicy: 'Exact', objectSelector: { matchLabels: { row: word } } },
      ])
      await session.create(autoscaler(word))
    }),
    row('takes the scope of a rule and the labels of the namespace into account', async (session) => {
      const word = 'row-scope'
      const rules = [{ ...everything, scope: 'Cluster' }]
      await configure(session, 'Validating', word, [
        { path: '/echo', rules },
        {
          path: refusing({ message: 'in the namespace' }),
          namespaceSelector: { matchLabels: { no: 'such' } },
          rules: [{ ...everything, scope: 'Namespaced' }],
        },
      ])
      await session.create(configMap(word))
      await session.create({
        ...{ apiVersion: 'v1', kind: 'Namespace' },
        metadata: { name: 'scope-$ID', labels: { row: word, no: 'such' } },
      })
    }),
    row('calls mutating webhooks in the order of their names, and again those that ask for it', async (session) => {
      const word = 'row-order'
      const append = [{ op: 'add', path: '/data/count', value: 'x' }]
      await configure(session, 'Mutating', word, [
        {
          path: `/patch/${encoded([{ op: 'copy', from: '/data/a', path: '/data/b' }])}`,
          reinvocationPolicy: 'IfNeeded',
        },
        { path: `/patch/${encoded([{ op: 'replace', path: '/data/a', value: '2' }])}` },
        { path: `/patch/${encoded(append)}` },
      ])
      await session.create(configMap(word))
    }),
    row('refuses a dry run where a webhook has side effects', async (session) => {
      const word = 'row-effects'
      await configure(session, 'Validating', word, [{ path: '/allow' }])
      await session.create(configMap(word), { query: '?dryRun=All' })
    }),
    row('does not show webhook configurations to webhooks', async (session) => {
      const word = 'row-exempt'
      await configure(session, 'Validating', word, [{ path: refusing({ message: 'no' }) }])
      const path = `/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/${word}-$ID`
      await session.patch(path, { metadata: { labels: { row: word } } }, 'merge', { quiet: true })
      const { status } = await session.delete(path, {}, { quiet: true })
      session.note('the status of the deletion', status)
    }),
    row('shows generated names to validating webhooks alone', async (session) => {
      const word = 'row-generated'
      await configure(session, 'Mutating', word, [{ path: '/echo' }])
      const { name: _name, ...metadata } = configMap(word).metadata as Json
      await session.create({ ...configMap(word), metadata: { ...metadata, generateName: 'made-' } })
    }),
    row('calls a webhook only where its conditions hold', async (session) => {
      const word = 'row-conditions'
      const condition = (expression: string): Json => ({ name: 'c', expression })
      const denying = (message: string, ...conditions: Json[]): Json & { path: string } => ({
        path: refusing({ message }),
        matchConditions: conditions.map((one, index) => ({ ...one, name: `c-${index}` })),
        objectSelector: { matchLabels: { row: word, to: message } },
      })
      await configure(session, 'Validating', word, [
        denying(
          'name',
          condition("object.metadata.name == 'row-conditions-name'"),
          condition("request.operation == 'CREATE'"),
        ),
        denying('never', condition('object.data.a == "2"')),
        denying('broken', condition('object.data.missing == "x"')),
        { ...denying('open', condition('object.data.missing == "x"')), failurePolicy: 'Ignore' },
        denying('false', condition('object.data.missing == "x"'), condition('false')),
        denying('old', condition('oldObject == null')),
      ])
      for (const to of ['name', 'never', 'broken', 'open', 'false', 'old']) {
        const object = configMap(`${word}-${to}`, word)
        await session.create({ ...object, metadata: { ...object.metadata, labels: { row: word, to } } })
      }
    }),
    row('shows a binding, an eviction, a token request and a connection', async (session) => {
      const word = 'row-others'
      const pods = '/api/v1/namespaces/$NS/pods'
      const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: word, labels: { row: word } } }
      await session.create({ ...pod, spec: { containers: [{ name: 'c', image: 'x' }] } }, { quiet: true })
      const resources = ['pods/binding', 'pods/eviction', 'pods/exec', 'pods/attach', 'serviceaccounts/token']
      await configure(session, 'Validating', word, [
        { path: '/echo', objectSelector: {}, rules: [{ ...everything, resources }] },
      ])
      const target = { apiVersion: 'v1', kind: 'Node', name: 'n' }
      const named = { metadata: { name: word, labels: { row: word } } }
      await session.send('POST', `${pods}/${word}/binding`, {
        body: { kind: 'Binding', apiVersion: 'v1', ...named, target },
      })
      await session.send('POST', `${pods}/${word}/eviction?dryRun=All`, {
        body: { kind: 'Eviction', apiVersion: 'policy/v1', ...named },
      })
      await session.send('POST', '/api/v1/namespaces/$NS/serviceaccounts/default/token', {
        body: {
          kind: 'TokenRequest',
          apiVersion: 'authentication.k8s.io/v1',
          spec: { expirationSeconds: 600, audiences: ['me'] },
        },
      })
      await session.send('POST', `${pods}/${word}/exec?command=a&command=b&stdin=true&stdout=1&container=c`)
      await session.send('POST', `${pods}/${word}/attach?stdout=true`)
    }),
    row('refuses custom resources, and applies a patch to them', async (session) => {
      const word = 'row-custom'
      const group = '$ID.example.com'
      const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } }
      await session.create(
        {
          apiVersion: 'apiextensions.k8s.io/v1',
          kind: 'CustomResourceDefinition',
          metadata: { name: `things.${group}` },
          spec: {
            group,
            scope: 'Namespaced',
            names: { plural: 'things', kind: 'Thing' },
            versions: [
              { name: 'v1', served: true, storage: true, schema },
              { name: 'v2', served: true, storage: false, schema },
            ],
          },
        },
        { quiet: true },
      )
      const path = `/apis/${group}/v2/namespaces/$NS/things`
      await session.untilQuiet(path, ({ status }) => status === 200)
      const rules = [{ operations: ['*'], apiGroups: [group], apiVersions: ['v1'], resources: ['things'] }]
      await configure(session, 'Mutating', word, [{ path: `/patch/${encoded([annotate('x', 'y')])}`, rules }])
      await configure(session, 'Validating', word, [
        { path: '/echo', rules, objectSelector: { matchLabels: { shown: 'yes' } } },
      ])
      const thing = (name: string, labels: Json): Json => ({
        ...{ apiVersion: `${group}/v2`, kind: 'Thing', spec: { n: 1 } },
        metadata: { name, labels: { row: word, ...labels }, annotations: { by: 'row' } },
      })
      await session.send('POST', path, { body: thing('one', {}) })
      await session.send('POST', path, { body: thing('two', { shown: 'yes' }) })
    }),
  ]
  return rows
}

function refusing(status: Json): string {
  return `/answer/${encoded({ allowed: false, status })}`
}

function titleHash(title: string): string {
  let hash = 0
  for (const char of title) hash = (hash * 31 + char.charCodeAt(0)) % 1_000_000
  return String(hash)
}

function statefulSet(word: string): Manifest {
  return {
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    metadata: { name: word, labels: { row: word } },
    spec: {
      replicas: 1,
      serviceName: 's',
      selector: { matchLabels: { a: 'b' } },
      template: { metadata: { labels: { a: 'b' } }, spec: { containers: [{ name: 'c', image: 'x' }] } },
    },
  }
}

function autoscaler(word: string): Manifest {
  return {
    apiVersion: 'autoscaling/v2',
    kind: 'HorizontalPodAutoscaler',
    metadata: { name: word, labels: { row: word } },
    spec: { maxReplicas: 3, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'd' } },
  }
}
