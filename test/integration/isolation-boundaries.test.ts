// Boundaries between logical clusters beyond paths: revisions, tokens after recreation, reviews, caches, metrics.
// docs/isolation.md lists all boundaries with their tests.
import { expect } from 'chai'
import { waitFor } from '#test/support/index.ts'
import { at, textAt } from './json.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import { openRawClient, type RawClient } from './raw-client.ts'

const inDefault = (base: string, resource: string): string => `${base}/api/v1/namespaces/default/${resource}`
const bearer = (token: string) => ({ headers: ['Authorization', `Bearer ${token}`] })

describe('boundaries between logical clusters', function () {
  this.timeout(120_000)
  let kcp: KcpInstance
  let acme: Tenant
  let bob: Tenant
  let nobody: RawClient

  before(async () => {
    kcp = await startInstance()
    acme = await kcp.tenant('acme')
    bob = await kcp.tenant('bob')
    nobody = openRawClient({ port: kcp.port })
  })
  after(async () => {
    await nobody[Symbol.asyncDispose]()
    await kcp[Symbol.asyncDispose]()
  })

  async function tokenOf({ http, base }: Tenant): Promise<string> {
    const path = `${inDefault(base, 'serviceaccounts')}/default/token`
    const response = await waitFor(
      async () => {
        const made = await http.request('POST', path, { body: { spec: {} } })
        return made.status === 201 && made
      },
      { what: 'a token', deadlineMs: 10_000 },
    )
    return textAt(response.json(), 'status.token')
  }

  it("a revision of one, used in a list or a watch of another, returns only the other's own past", async () => {
    const create = async ({ http, base }: Tenant, name: string): Promise<string> => {
      const response = await http.request('POST', inDefault(base, 'configmaps'), {
        body: { metadata: { name, labels: { past: 'yes' } } },
      })
      expect(response.status, response.text).to.equal(201)
      return textAt(response.json(), 'metadata.resourceVersion')
    }
    await create(bob, 'bobs-first')
    const foreign = await create(acme, 'acmes')
    await create(bob, 'bobs-second')
    const list = `${inDefault(bob.base, 'configmaps')}?labelSelector=past&resourceVersion=${foreign}`
    for (const query of [`${list}&resourceVersionMatch=Exact`, `${list}&resourceVersionMatch=NotOlderThan`]) {
      const response = await bob.http.request('GET', query)
      expect(response.text).not.to.include('acmes')
      expect(response.text).to.include('bobs-first')
    }
    await using watch = await bob.http.watch(`${list}&watch=1&timeoutSeconds=1`)
    expect((await watch.rest()).map(({ object }) => object.metadata.name)).to.deep.equal(['bobs-second'])
  })

  it('a token of one is unauthenticated in another, also in a TokenReview there', async () => {
    const token = await tokenOf(acme)
    const self = await nobody.request('GET', inDefault(acme.base, 'configmaps'), bearer(token))
    expect(self.status, 'known at home, without rights').to.equal(403)
    for (const path of [inDefault(bob.base, 'configmaps'), '/clusters/root/api', '/clusters/*/api/v1/secrets'])
      expect((await nobody.request('GET', path, bearer(token))).status, path).to.equal(401)
    const review = `/apis/authentication.k8s.io/v1/tokenreviews`
    const home = await acme.http.request('POST', acme.base + review, { body: { spec: { token } } })
    expect(at(home.json(), 'status.authenticated')).to.equal(true)
    const abroad = await bob.http.request('POST', bob.base + review, { body: { spec: { token } } })
    expect(abroad.status).to.equal(201)
    expect(at(abroad.json(), 'status.authenticated') ?? false).to.equal(false)
    expect(abroad.text).not.to.match(/acme|system:serviceaccount/)
  })

  it('an access review in another is refused, and one in its own uses only its own RBAC', async () => {
    const body = {
      spec: { user: 'eve', resourceAttributes: { verb: 'get', resource: 'secrets', namespace: 'default' } },
    }
    const path = '/apis/authorization.k8s.io/v1/subjectaccessreviews'
    expect((await acme.http.request('POST', bob.base + path, { body })).status).to.equal(401)
    await acme.kubectl(['create', 'clusterrolebinding', 'eve', '--clusterrole=cluster-admin', '--user=eve'])
    expect(at((await acme.http.request('POST', acme.base + path, { body })).json(), 'status.allowed')).to.equal(true)
    expect(at((await bob.http.request('POST', bob.base + path, { body })).json(), 'status.allowed')).to.equal(false)
  })

  it('an impersonated ServiceAccount is the one of this logical cluster', async () => {
    const name = 'system:serviceaccount:default:default'
    await acme.kubectl([
      ...['create', 'clusterrolebinding', 'robot', '--clusterrole=view'],
      '--serviceaccount=default:default',
    ])
    const as = { headers: ['Impersonate-User', name] }
    expect((await acme.http.request('GET', inDefault(acme.base, 'configmaps'), as)).status).to.equal(200)
    expect((await bob.http.request('GET', inDefault(bob.base, 'configmaps'), as)).status).to.equal(403)
    expect((await acme.http.request('GET', inDefault(bob.base, 'configmaps'), as)).status).to.equal(401)
  })

  it('tokens and kubeconfigs end with their logical cluster, also when its name is used again', async () => {
    const brief = await kcp.tenant('brief')
    const token = await tokenOf(brief)
    const path = inDefault('/clusters/brief', 'configmaps')
    expect((await nobody.request('GET', path, bearer(token))).status).to.equal(403)
    await kcp.admin.kubectl(['delete', 'lc', 'brief', '--timeout=30s'])
    const again = await kcp.tenant('brief')
    await tokenOf(again)
    expect((await nobody.request('GET', path, bearer(token))).status).to.equal(401)
    expect((await brief.http.request('GET', path)).status).to.equal(401)
    expect((await again.http.request('GET', path)).status).to.equal(200)
  })

  it('kinds, OpenAPI documents and their ETags belong to one logical cluster', async () => {
    const crd = (schema: object): object => ({
      apiVersion: 'apiextensions.k8s.io/v1',
      kind: 'CustomResourceDefinition',
      metadata: { name: 'plans.secret.example' },
      spec: {
        group: 'secret.example',
        scope: 'Namespaced',
        names: { plural: 'plans', singular: 'plan', kind: 'Plan', listKind: 'PlanList' },
        versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
      },
    })
    const field = (name: string): object => ({ type: 'object', properties: { [name]: { type: 'string' } } })
    await acme.kubectl(['create', '-f', '-'], { input: crd(field('ofacme')) })
    await acme.kubectl(['wait', '--for=condition=Established', 'crd/plans.secret.example', '--timeout=20s'])
    const document = '/openapi/v3/apis/secret.example/v1'
    const ofAcme = await waitFor(
      async () => {
        const response = await acme.http.request('GET', acme.base + document)
        return response.status === 200 && response
      },
      { what: 'the document', deadlineMs: 10_000 },
    )
    expect(ofAcme.text).to.include('ofacme')
    const aggregated = ['Accept', 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList']
    for (const [path, headers] of [
      ['/apis', []],
      ['/apis', aggregated],
      ['/apis/secret.example/v1', []],
      ['/openapi/v3', []],
      ['/openapi/v2', []],
      [document, []],
    ] as const) {
      const response = await bob.http.request('GET', bob.base + path, { headers })
      expect(response.text, path).not.to.match(/secret\.example|ofacme/)
    }
    expect((await bob.http.request('GET', `${bob.base}/apis/secret.example/v1/plans`)).status).to.equal(404)
    await bob.kubectl(['create', '-f', '-'], { input: crd(field('ofbob')) })
    const tag = String(ofAcme.headers['etag'])
    const ofBob = await waitFor(
      async () => {
        const response = await bob.http.request('GET', bob.base + document, { headers: ['If-None-Match', tag] })
        return response.status !== 404 && response
      },
      { what: "bob's document", deadlineMs: 10_000 },
    )
    expect(ofBob.status, 'not "unchanged"').to.equal(200)
    expect(ofBob.text).to.include('ofbob').and.not.include('ofacme')
  })

  it('process-wide paths are for the installation only, and name no logical cluster but the largest users', async () => {
    for (const path of ['/debug/pprof/', '/debug/flags/v', '/logs', '/configz', '/clusters'])
      for (const prefix of ['', acme.base])
        expect((await bob.http.request('GET', prefix + path)).status, prefix + path).to.be.oneOf([401, 403, 404])
    expect((await bob.http.request('GET', `${acme.base}/metrics`)).status).to.be.oneOf([401, 403])
    expect((await bob.http.request('GET', '/metrics')).text, 'its own metrics').not.to.match(/acme|bob|kcp_/)
    const { text } = await kcp.admin.http.request('GET', '/metrics')
    const { stdout } = await kcp.admin.kubectl(['get', 'lc', '-o', 'jsonpath={.items[*].status.id}'])
    const ids = stdout.split(' ').filter((id) => id !== '')
    expect(ids.length).to.be.greaterThan(1)
    for (const id of ids) expect(text).not.to.include(id)
    // The 50 that use most, for the admins of the installation.
    const others = text.split('\n').filter((line) => !/^kcp_usage_\w+_top\{/.test(line))
    for (const name of ['acme', 'bob']) expect(others.join('\n')).not.to.include(name)
    for (const path of ['/readyz?verbose', '/livez?verbose', '/healthz?verbose', '/version'])
      expect((await nobody.request('GET', path)).text).not.to.match(/acme|bob/)
  })

  it('a tenant cannot create, read or change LogicalClusters and MemberClusters from inside', async () => {
    const own = [acme.base, '']
    const others = ['/clusters/root', '/clusters/*']
    const tried = [
      ...['logicalclusters', 'memberclusters'].flatMap((kind) => [...own, ...others].map((base) => ({ base, kind }))),
      // Those of its own logical cluster are the tenant's.
      ...others.map((base) => ({ base, kind: 'placements' })),
    ]
    for (const { base, kind } of tried) {
      const { status } = await acme.http.request('GET', `${base}/apis/kcp.dev/v1alpha1/${kind}`)
      expect(status, `${base} ${kind}`).to.be.oneOf([401, 403, 404])
    }
    const made = await acme.http.request('POST', `${acme.base}/apis/kcp.dev/v1alpha1/logicalclusters`, {
      body: { metadata: { name: 'mine' } },
    })
    expect(made.status).to.equal(404)
  })
})
