// pods/NAME/eviction as `kubectl drain` uses it; the status of the PodDisruptionBudgets is written here by hand.
import { expect } from 'chai'
import { at, textAt } from './json.ts'
import { startServedApi, type Reply, type ServedApi, type ServedTenant } from './served-api.ts'

const json = (reply: Reply): unknown => JSON.parse(reply.text)
const pods = '/api/v1/namespaces/default/pods'
const budgets = '/apis/policy/v1/namespaces/default/poddisruptionbudgets'

describe('eviction of a pod', () => {
  let served: ServedApi
  let tenant: ServedTenant

  before(async () => {
    served = await startServedApi()
  })
  after(() => served[Symbol.asyncDispose]())
  let count = 0
  beforeEach(async () => {
    tenant = await served.tenant(`evict-${++count}`)
  })

  const ask = (method: string, path: string, body?: object, type = 'application/json'): Promise<Reply> =>
    tenant.request(method, `${tenant.base}${path}`, {
      ...(body === undefined ? {} : { body }),
      headers: { 'content-type': type },
    })
  const setStatus = async (path: string, status: object): Promise<void> => {
    const { status: code, text } = await ask('PATCH', `${path}/status`, { status }, 'application/merge-patch+json')
    expect(code, text).to.equal(200)
  }
  async function createPod(name: string, { ready = true } = {}): Promise<void> {
    const spec = { containers: [{ name: 'c', image: 'x' }] }
    const created = await ask('POST', pods, { metadata: { name, labels: { app: 'web' } }, spec })
    expect(created.status, created.text).to.equal(201)
    const conditions = [{ type: 'Ready', status: ready ? 'True' : 'False' }]
    await setStatus(`${pods}/${name}`, { phase: 'Running', conditions })
  }
  async function createBudget(name: string, status: object, spec: object = {}): Promise<void> {
    const selector = { matchLabels: { app: 'web' } }
    const created = await ask('POST', budgets, { metadata: { name }, spec: { minAvailable: 1, selector, ...spec } })
    expect(created.status, created.text).to.equal(201)
    const counts = { currentHealthy: 2, desiredHealthy: 1, expectedPods: 2 }
    await setStatus(`${budgets}/${name}`, { observedGeneration: 1, disruptionsAllowed: 1, ...counts, ...status })
  }
  const evict = (name: string, more: object = {}): Promise<Reply> =>
    ask('POST', `${pods}/${name}/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name }, ...more })
  const isThere = async (name: string): Promise<boolean> => (await ask('GET', `${pods}/${name}`)).status === 200

  it('deletes the pod if no budget matches', async () => {
    await createPod('a')
    const reply = await evict('a')
    expect(reply.status, reply.text).to.equal(201)
    expect(json(reply)).to.deep.include({ kind: 'Status', status: 'Success' })
    expect(await isThere('a')).to.equal(false)
    expect((await evict('a')).status).to.equal(404)
  })

  it('uses up its budget, and is refused when nothing is left', async () => {
    await createPod('a')
    await createPod('b')
    await createBudget('web', {})
    expect((await evict('a')).status).to.equal(201)
    const { status } = json(await ask('GET', `${budgets}/web`)) as { status: Record<string, unknown> }
    expect(status['disruptionsAllowed']).to.equal(0)
    expect(status['disruptedPods']).to.have.property('a')
    const refused = await evict('b')
    expect(refused.status, refused.text).to.equal(429)
    expect(textAt(json(refused), 'details.causes.0.reason')).to.equal('DisruptionBudget')
    expect(textAt(json(refused), 'details.causes.0.message')).to.equal(
      'The disruption budget web needs 1 healthy pods and has 2 currently',
    )
    expect(await isThere('b')).to.equal(true)
  })

  it('is refused until the status of the budget is first computed', async () => {
    await createPod('a')
    await createBudget('web', { observedGeneration: 0 })
    const refused = await evict('a')
    expect(refused.status).to.equal(429)
    expect(at(json(refused), 'details.retryAfterSeconds')).to.equal(10)
    expect(await isThere('a')).to.equal(true)
  })

  it('allows a pod that is not ready while enough others are healthy', async () => {
    await createPod('a', { ready: false })
    await createBudget('web', { disruptionsAllowed: 0 })
    expect((await evict('a')).status).to.equal(201)
    await createPod('b', { ready: false })
    await setStatus(`${budgets}/web`, { currentHealthy: 0 })
    expect((await evict('b')).status).to.equal(429)
  })

  it('is refused with two budgets, and for a pod with another uid or name', async () => {
    await createPod('a')
    expect((await evict('a', { deleteOptions: { preconditions: { uid: 'other' } } })).status).to.equal(409)
    await createBudget('one', {})
    await createBudget('two', {})
    expect((await evict('a')).status).to.equal(500)
    expect((await evict('a', { metadata: { name: 'b' } })).status).to.equal(400)
    expect(await isThere('a')).to.equal(true)
  })

  it('changes nothing in a dry run', async () => {
    await createPod('a')
    await createBudget('web', {})
    expect((await evict('a', { deleteOptions: { dryRun: ['All'] } })).status).to.equal(201)
    expect(await isThere('a')).to.equal(true)
    expect(at(json(await ask('GET', `${budgets}/web`)), 'status.disruptionsAllowed')).to.equal(1)
  })
})
