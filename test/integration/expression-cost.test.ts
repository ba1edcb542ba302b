// Expressions of tenants whose intermediate values hold one another many times over, wherever expressions are: the
// request ends soon, and others are served meanwhile.
import { expect } from 'chai'
import { isLongRun } from '#test/support/index.ts'
import { startServedApi, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const admission = '/clusters/acme/apis/admissionregistration.k8s.io'
const configMaps = '/clusters/acme/api/v1/namespaces/default/configmaps'
// Generous in `make test`, where other suites share the machine.
const maxWaitMs = isLongRun ? 150 : 2500
const times = 28
const nested = `[[1]]${'.map(x, [x, x])'.repeat(times)}`
const formatted = `'%s'.format([${nested}])`
/** Each twice the one before. */
const doubled = Array.from({ length: times }, (_, i) => ({
  name: `v${i + 1}`,
  expression: `[variables.v${i}, variables.v${i}]`,
}))
const variables = [{ name: 'v0', expression: '[1]' }, ...doubled]
const matchConstraints = {
  resourceRules: [{ apiGroups: [''], apiVersions: ['v1'], operations: ['CREATE'], resources: ['configmaps'] }],
}

describe('expressions whose values hold one another many times over', function () {
  this.timeout(120_000)
  let served: ServedApi
  let acme: ServedTenant
  let undo: (() => Promise<void>)[] = []

  before(async () => {
    served = await startServedApi()
    acme = await served.tenant('acme')
    expect((await acme.request('GET', '/clusters/acme/api/v1/namespaces/default')).status).to.equal(200)
  })
  after(() => served[Symbol.asyncDispose]())
  afterEach(async () => {
    for (const one of undo.splice(0).reverse()) await one()
    undo = []
  })

  async function create(path: string, name: string, more: object): Promise<void> {
    const response = await acme.request('POST', path, { body: { metadata: { name }, ...more } })
    expect(response.status, response.text.slice(0, 500)).to.equal(201)
    undo.push(async () => {
      await acme.request('DELETE', `${path}/${name}`)
    })
  }

  async function policy(name: string, spec: object): Promise<void> {
    const path = `${admission}/v1/validatingadmissionpolicies`
    await create(path, name, { spec: { matchConstraints, ...spec } })
    const binding = { policyName: name, validationActions: ['Deny', 'Audit'] }
    await create(`${admission}/v1/validatingadmissionpolicybindings`, name, { spec: binding })
  }

  async function mutation(name: string, more: object, failurePolicy = 'Fail'): Promise<void> {
    const spec = { matchConstraints, failurePolicy, reinvocationPolicy: 'IfNeeded', variables, mutations: [more] }
    await create(`${admission}/v1beta1/mutatingadmissionpolicies`, name, { spec })
    const binding = { policyName: name }
    await create(`${admission}/v1beta1/mutatingadmissionpolicybindings`, name, { spec: binding })
  }

  /** The answer, and how long the event loop did nothing else at most. */
  async function send(path = configMaps, body: object = {}): Promise<{ answer: Reply; waitMs: number }> {
    let [waitMs, last] = [0, performance.now()]
    const tick = setInterval(() => {
      const now = performance.now()
      waitMs = Math.max(waitMs, now - last)
      last = now
    }, 5)
    const answer = await acme.request('POST', path, { body: { metadata: { generateName: 'x-' }, ...body } })
    clearInterval(tick)
    return { answer, waitMs: Math.max(waitMs, performance.now() - last) }
  }

  const patch = (value: string): object => ({
    patchType: 'JSONPatch',
    jsonPatch: { expression: `[JSONPatch{op: "add", path: "/data", value: ${value}}]` },
  })
  const configuration = (value: string): object => ({
    patchType: 'ApplyConfiguration',
    applyConfiguration: { expression: `Object{data: ${value}}` },
  })

  for (const { title, prepare, status } of [
    {
      title: 'the value of a JSON patch',
      prepare: () => mutation('patch', patch(`{"a": variables.v${times}}`)),
      status: 403,
    },
    {
      title: 'the value of a JSON patch that fails open',
      prepare: () => mutation('patch', patch(`{"a": variables.v${times}}`), 'Ignore'),
      status: 201,
    },
    {
      title: 'an apply configuration',
      prepare: () => mutation('apply', configuration(`{"a": variables.v${times}}`)),
      status: 403,
    },
    {
      title: 'a text of a mutation',
      prepare: () => mutation('text', patch(`{"a": "%s".format([variables.v${times}])}`)),
      status: 403,
    },
    {
      title: 'a validation',
      prepare: () => policy('validation', { validations: [{ expression: `${formatted} == ''` }] }),
      status: 422,
    },
    {
      title: 'a message',
      prepare: () =>
        policy('message', { validations: [{ expression: '1 == 2', message: 'no', messageExpression: formatted }] }),
      status: 422,
    },
    {
      title: 'an audit annotation',
      prepare: () => policy('audit', { auditAnnotations: [{ key: 'a', valueExpression: formatted }] }),
      status: 422,
    },
    {
      title: 'a match condition',
      prepare: () =>
        policy('condition', {
          matchConditions: [{ name: 'a', expression: `${formatted} == ''` }],
          validations: [{ expression: 'true' }],
        }),
      status: 422,
    },
    {
      title: 'a match condition of a webhook',
      prepare: () =>
        create(`${admission}/v1/validatingwebhookconfigurations`, 'hook', {
          webhooks: [
            {
              name: 'a.b.c',
              clientConfig: { url: 'https://192.0.2.1/' },
              rules: matchConstraints.resourceRules,
              matchConditions: [{ name: 'a', expression: `${formatted} == ''` }],
              sideEffects: 'None',
              admissionReviewVersions: ['v1'],
            },
          ],
        }),
      status: 403,
    },
  ])
    it(`are ended soon in ${title}`, async () => {
      await prepare()
      const { answer, waitMs } = await send()
      expect(answer.status, answer.text.slice(0, 500)).to.equal(status)
      expect(answer.text.length).to.be.below(50_000)
      expect(waitMs).to.be.below(maxWaitMs)
    })

  it('are ended soon in a rule of a CustomResourceDefinition, for each item of a list', async () => {
    const rule = `'%s'.format([[[self]]${'.map(x, [x, x])'.repeat(16)}]) != ''`
    const items = { type: 'integer', 'x-kubernetes-validations': [{ rule }] }
    const spec = { type: 'object', properties: { list: { type: 'array', maxItems: 100, items } } }
    const schema = { openAPIV3Schema: { type: 'object', properties: { spec } } }
    await create('/clusters/acme/apis/apiextensions.k8s.io/v1/customresourcedefinitions', 'as.x.io', {
      spec: {
        group: 'x.io',
        scope: 'Cluster',
        names: { plural: 'as', singular: 'a', kind: 'A', listKind: 'AList' },
        versions: [{ name: 'v1', served: true, storage: true, schema }],
      },
    })
    const list = Array.from({ length: 100 }, (_, i) => i)
    const object = { apiVersion: 'x.io/v1', kind: 'A', spec: { list } }
    let sent = await send('/clusters/acme/apis/x.io/v1/as', object)
    for (let i = 0; i < 100 && sent.answer.status === 404; i++)
      sent = await send('/clusters/acme/apis/x.io/v1/as', object)
    expect(sent.answer.status, sent.answer.text.slice(0, 500)).to.equal(422)
    expect(sent.answer.text).to.include('cost budget')
    expect(sent.waitMs).to.be.below(maxWaitMs)
  })

  it('of many policies give way to others between expressions, and to 413 in the end', async () => {
    const list = JSON.stringify(Array.from({ length: 40 }, (_, i) => i))
    const expression = `${list}.all(a, ${list}.all(b, ${list}.all(c, a + b + c >= 0)))`
    for (let i = 0; i < 20; i++)
      await policy(`p${i}`, { validations: Array.from({ length: 10 }, () => ({ expression })) })
    const { answer, waitMs } = await send()
    expect(answer.status, answer.text.slice(0, 500)).to.equal(413)
    expect(waitMs).to.be.below(maxWaitMs / 4)
  })
})
