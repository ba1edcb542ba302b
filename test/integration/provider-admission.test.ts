// Admission of the provider of an APIExport in its consumers: webhooks and policies act where the binding accepts them,
// on exported resources alone.
import { expect } from 'chai'
import { waitFor } from '#test/support/index.ts'
import { startWebhookServer, type WebhookServer } from '#test/support/webhook-server.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import {
  answer,
  apis,
  bindingPath,
  bindingTo,
  exportResource,
  hasReason,
  isReady,
  send,
  until,
  type WithConditions,
} from './shared-api-objects.ts'

const registration = '/apis/admissionregistration.k8s.io/v1'
const widgets = '/apis/example.io/v1/namespaces/default/widgets'
const exportPath = `${apis}/v1alpha2/apiexports/widgets`
const rules = [
  { apiGroups: ['*'], apiVersions: ['*'], resources: ['*'], operations: ['CREATE', 'UPDATE', 'DELETE'], scope: '*' },
]

const widget = (name: string, spec: object = {}): object => ({
  apiVersion: 'example.io/v1',
  kind: 'Widget',
  metadata: { name },
  spec,
})

const webhookOf = (type: 'Validating' | 'Mutating', name: string, clientConfig: object): object => ({
  metadata: { name },
  webhooks: [
    {
      name: `${name}.example.io`,
      clientConfig,
      rules,
      sideEffects: 'None',
      admissionReviewVersions: ['v1'],
      matchConditions: [{ name: 'named', expression: `object == null || object.metadata.name.startsWith('${name}')` }],
    },
  ],
})

describe('admission of a provider', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let hooks: WebhookServer
  let [provider, accepting, plain]: Tenant[] = []

  before(async () => {
    hooks = await startWebhookServer()
    kcp = await startInstance(['--egress-allow', '127.0.0.1/32'])
    ;[provider, accepting, plain] = await Promise.all(
      ['provider', 'accepting', 'plain'].map((name) => kcp.tenant(name)),
    )
    await exportResource(provider!)
    await answer(provider!, 'POST', '/api/v1/namespaces/default/configmaps', {
      metadata: { name: 'limits' },
      data: { most: '10' },
    })
    for (const [name, spec] of Object.entries(policies)) await addPolicy(name, spec)
    await addMutation()
    const patch = Buffer.from(JSON.stringify([{ op: 'add', path: '/spec/color', value: 'red' }])).toString('base64url')
    const configurations: [string, object][] = [
      ['validating', webhookOf('Validating', 'echoed', hooks.at('/echo'))],
      ['validating', webhookOf('Validating', 'broken', hooks.at('/status/500'))],
      ['mutating', webhookOf('Mutating', 'painted', hooks.at(`/patch/${patch}`))],
    ]
    for (const [type, object] of configurations)
      await answer(provider!, 'POST', `${registration}/${type}webhookconfigurations`, object)
    for (const tenant of [accepting!, plain!]) {
      await answer(tenant, 'POST', bindingPath(), bindingTo('provider', 'widgets'))
      await until(tenant, bindingPath('widgets'), isReady)
    }
    await until(plain!, bindingPath('widgets'), hasReason('AdmissionNotAnswered'))
    const accepted = { spec: { admission: { webhooks: 'Accepted', policies: 'Accepted' } } }
    await answer(accepting!, 'PATCH', bindingPath('widgets'), accepted)
    await until(accepting!, bindingPath('widgets'), isAnswered)
  })
  after(async () => {
    await kcp[Symbol.asyncDispose]()
    await hooks[Symbol.asyncDispose]()
  })

  const policies: Readonly<Record<string, object>> = {
    limits: {
      paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
      validations: [
        { expression: "!has(object.spec) || !has(object.spec.size) || object.spec.size <= int(params.data['most'])" },
      ],
    },
    // What the policy sees of the consumer: the name of the logical cluster and of the namespace, and no rights.
    sees: {
      matchConditions: [{ name: 'named', expression: "object != null && object.metadata.name == 'seen'" }],
      variables: [
        { name: 'of', expression: "has(namespaceObject.metadata.creationTimestamp) ? 'namespace' : 'no namespace'" },
        { name: 'secrets', expression: "string(authorizer.group('').resource('secrets').check('get').allowed())" },
        {
          name: 'own',
          expression: "string(authorizer.group('example.io').resource('widgets').check('get').allowed())",
        },
      ],
      validations: [
        {
          expression: 'false',
          messageExpression:
            "[string(object.metadata.annotations['kcp.io/cluster']), variables.of, variables.secrets, variables.own].join(',')",
        },
      ],
    },
  }

  async function addPolicy(name: string, spec: object): Promise<void> {
    const policy = {
      metadata: { name },
      spec: { matchConstraints: { resourceRules: [{ ...rules[0], operations: ['CREATE', 'UPDATE'] }] }, ...spec },
    }
    await answer(provider!, 'POST', `${registration}/validatingadmissionpolicies`, policy)
    const paramRef = { name: 'limits', namespace: 'default', parameterNotFoundAction: 'Deny' }
    const binding = { policyName: name, validationActions: ['Deny'], ...('paramKind' in spec && { paramRef }) }
    await answer(provider!, 'POST', `${registration}/validatingadmissionpolicybindings`, {
      metadata: { name },
      spec: binding,
    })
  }

  async function addMutation(): Promise<void> {
    const beta = registration.replace(/v1$/, 'v1beta1')
    const applyConfiguration = { expression: "Object{spec: Object.spec{shape: 'round'}}" }
    const matchConditions = [{ name: 'named', expression: "object.metadata.name == 'painted'" }]
    const spec = {
      reinvocationPolicy: 'Never',
      matchConstraints: { resourceRules: [{ ...rules[0], operations: ['CREATE'], apiGroups: ['example.io'] }] },
      matchConditions,
      mutations: [{ patchType: 'ApplyConfiguration', applyConfiguration }],
    }
    await answer(provider!, 'POST', `${beta}/mutatingadmissionpolicies`, { metadata: { name: 'shaped' }, spec })
    const binding = { metadata: { name: 'shaped' }, spec: { policyName: 'shaped' } }
    await answer(provider!, 'POST', `${beta}/mutatingadmissionpolicybindings`, binding)
  }

  it('acts on exported objects of a consumer that accepts it, with parameters of the provider', async () => {
    const refused = await send(accepting!, 'POST', widgets, widget('large', { size: 11 }))
    expect(refused.status, refused.text).to.equal(422)
    expect(refused.text).to.include(`'limits' of APIExport 'widgets' in logical cluster 'provider'`)
    await answer(accepting!, 'POST', widgets, widget('small', { size: 9 }))
    await answer(provider!, 'PATCH', '/api/v1/namespaces/default/configmaps/limits', { data: { most: '11' } })
    await answer(accepting!, 'POST', widgets, widget('large', { size: 11 }))
    const painted = await answer(accepting!, 'POST', widgets, widget('painted'))
    expect(painted).to.deep.include({ spec: { color: 'red', shape: 'round' } })
    expect(painted.metadata).to.not.have.property('annotations')
  })

  it('does not act in a consumer that has not accepted it', async () => {
    expect(await answer(plain!, 'POST', widgets, widget('painted'))).to.deep.include({ spec: {} })
    for (const name of ['echoed', 'broken', 'seen']) await answer(plain!, 'POST', widgets, widget(name, { size: 1000 }))
  })

  it('names the consumer to webhooks and policies, and tells them no more of it', async () => {
    const echoed = await send(accepting!, 'POST', widgets, widget('echoed'))
    expect(echoed.status, echoed.text).to.equal(400)
    expect(echoed.text).to.include(String.raw`\"kcp.io/cluster\":\"accepting\"`)
    const seen = await send(accepting!, 'POST', widgets, widget('seen'))
    expect(seen.text).to.include('accepting,no namespace,false,true')
  })

  it('does not act on other objects of the consumer, whatever its rules say', async () => {
    const before = hooks.asked.length
    for (const name of ['echoed', 'broken', 'seen'])
      await answer(accepting!, 'POST', '/api/v1/namespaces/default/configmaps', { metadata: { name } })
    expect(hooks.asked).to.have.length(before)
  })

  it('fails closed without telling the consumer the address of the webhook', async () => {
    const failed = await send(accepting!, 'POST', widgets, widget('broken'))
    expect(failed.status, failed.text).to.equal(500)
    expect(failed.text).to.include('of logical cluster').and.not.include('127.0.0.1')
  })

  it('does not let a consumer choose among the parameters of the provider by the name of a namespace', async () => {
    const path = `${registration}/validatingadmissionpolicybindings/limits`
    await answer(provider!, 'PATCH', path, { spec: { paramRef: { namespace: null } } })
    await until(accepting!, `${widgets}/small`, () => true)
    const refused = await send(accepting!, 'POST', widgets, widget('unbounded', { size: 1 }))
    expect(refused.status, refused.text).to.equal(422)
    expect(refused.text).to.include('paramRef')
    await answer(provider!, 'PATCH', path, { spec: { paramRef: { namespace: 'default' } } })
  })

  it('acts on writes of the provider through its view, and on a large object', async () => {
    const view = { ...provider!, base: '/services/apiexport/provider/widgets/clusters/accepting' }
    const refused = await send(view, 'POST', widgets, widget('viewed', { size: 12 }))
    expect(refused.status, refused.text).to.equal(422)
    const large = { size: 12, notes: Array.from({ length: 40_000 }, (_, i) => `n${i}`) }
    const offloaded = await send(accepting!, 'POST', widgets, widget('heavy', large))
    expect(offloaded.status, offloaded.text).to.equal(422)
    expect(offloaded.text).to.include("'limits' of APIExport")
    const { status } = await send(accepting!, 'POST', widgets, widget('heavy', { ...large, size: 1 }))
    expect(status).to.equal(201)
  })

  it('keeps objects from consumers that have not accepted required admission; reads and deletions go on', async () => {
    await answer(provider!, 'PATCH', exportPath, { spec: { admission: { required: true, webhooks: ['painted'] } } })
    const bound = await until(plain!, bindingPath('widgets'), hasReason('AdmissionRequired'))
    expect(isReady(bound)).to.equal(true)
    const refused = await send(plain!, 'POST', widgets, widget('late'))
    expect(refused.status, refused.text).to.equal(403)
    expect(refused.text).to.include('spec.admission')
    await answer(plain!, 'GET', `${widgets}/seen`)
    await answer(plain!, 'DELETE', `${widgets}/seen`)
    // A webhook that the export does not name acts no longer.
    await waitFor(async () => (await send(accepting!, 'POST', widgets, widget('echoed'))).status === 201, {
      what: 'the webhook to end',
      deadlineMs: 10_000,
    })
    await answer(provider!, 'PATCH', exportPath, { spec: { admission: null } })
    for (const tenant of [accepting!, plain!])
      await until(tenant, bindingPath('widgets'), (object) => !JSON.stringify(object.status).includes('"required"'))
  })

  it('ends when the consumer rejects it', async () => {
    await answer(accepting!, 'PATCH', bindingPath('widgets'), { spec: { admission: { policies: 'Rejected' } } })
    await answer(accepting!, 'POST', widgets, widget('huge', { size: 1000 }))
  })
})

const isAnswered = ({ status }: WithConditions): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'AdmissionAnswered' && is === 'True') === true
