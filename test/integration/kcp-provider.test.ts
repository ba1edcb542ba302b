// The outside test of the view of an export: a controller built with the provider that CNCF kcp has for
// multicluster-runtime (test/programs/kcp-provider), with objects in the shapes of v1alpha1 as in its own example.
import { expect } from 'chai'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { KubeList, KubeObject } from '#apimachinery/meta/index.ts'
import { ensurePrograms, repositoryRoot, startProcess, waitFor, type ManagedProcess } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'

const apis = '/apis/apis.kcp.io/v1alpha1'
const widgets = '/apis/example.com/v1/namespaces/default/widgets'
const configMaps = '/api/v1/namespaces/default/configmaps'
const events = '/apis/events.k8s.io/v1/namespaces/default/events'
const within = { deadlineMs: 60_000, intervalMs: 200 }

const schema = {
  apiVersion: 'apis.kcp.io/v1alpha1',
  kind: 'APIResourceSchema',
  metadata: { name: 'v1.widgets.example.com' },
  spec: {
    group: 'example.com',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          type: 'object',
          properties: {
            spec: { type: 'object', properties: { size: { type: 'integer' }, doubled: { type: 'integer' } } },
          },
        },
      },
    ],
  },
}
const apiExport = {
  apiVersion: 'apis.kcp.io/v1alpha1',
  kind: 'APIExport',
  metadata: { name: 'widgets' },
  spec: {
    latestResourceSchemas: ['v1.widgets.example.com'],
    permissionClaims: [
      { all: true, group: '', resource: 'configmaps' },
      { all: true, group: '', resource: 'events' },
    ],
  },
}
const binding = {
  apiVersion: 'apis.kcp.io/v1alpha1',
  kind: 'APIBinding',
  metadata: { name: 'widgets' },
  spec: {
    reference: { export: { path: 'provider', name: 'widgets' } },
    permissionClaims: apiExport.spec.permissionClaims.map((claim) => ({ ...claim, state: 'Accepted' })),
  },
}

describe("a controller with CNCF kcp's own provider", function () {
  this.timeout(30 * 60_000) // the first build compiles everything
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let provider: Tenant
  let controller: ManagedProcess
  const consumers = new Map<string, Tenant>()

  const send = async (tenant: Tenant, method: string, path: string, body?: object): Promise<string> => {
    const { status, text } = await tenant.http.request(
      method,
      `${tenant.base}${path}`,
      body === undefined ? {} : { body },
    )
    expect(status, `${method} ${path}: ${text}`).to.be.within(200, 202)
    return text
  }
  const read = async (tenant: Tenant, path: string): Promise<KubeObject> =>
    JSON.parse(await send(tenant, 'GET', path)) as KubeObject
  const consumer = (name: string): Tenant => {
    const found = consumers.get(name)
    if (found === undefined) throw new Error(`no consumer ${name}`)
    return found
  }
  const bind = async (name: string): Promise<void> => {
    const tenant = consumers.get(name) ?? (await kcp.tenant(name))
    consumers.set(name, tenant)
    await send(tenant, 'POST', `${apis}/apibindings`, binding)
  }
  const widget = (name: string, size: number): object => ({
    apiVersion: 'example.com/v1',
    kind: 'Widget',
    metadata: { name },
    spec: { size },
  })
  const configMap = (name: string): object => ({
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name },
    data: { a: 'b' },
  })
  const isDoubled = async (name: string, object: string, size: number): Promise<boolean> =>
    ((await read(consumer(name), `${widgets}/${object}`))['spec'] as { doubled?: number }).doubled === size * 2
  const isAnswered = async (name: string, object: string): Promise<boolean> =>
    ((await read(consumer(name), `${configMaps}/${object}`))['data'] as { answer?: string }).answer === 'seen'
  const log = (): string => readFileSync(controller.logFile, 'utf8')
  const works = async (name: string, object: string, size: number): Promise<void> => {
    await waitFor(() => isDoubled(name, object, size), { what: `Widget ${object} of ${name}`, ...within })
    await waitFor(() => isAnswered(name, object), { what: `ConfigMap ${object} of ${name}`, ...within })
  }
  const give = async (name: string, object: string, size: number): Promise<void> => {
    await waitFor(
      async () => (await consumer(name).http.request('GET', `${consumer(name).base}${widgets}`)).status === 200,
      { what: `the API in ${name}`, ...within },
    )
    await send(consumer(name), 'POST', widgets, widget(object, size))
    await send(consumer(name), 'POST', configMaps, configMap(object))
  }

  before(async () => {
    const program = (await ensurePrograms(['kcp-provider']))['kcp-provider']
    kcp = stack.use(await startInstance())
    provider = await kcp.tenant('provider')
    await send(provider, 'POST', `${apis}/apiresourceschemas`, schema)
    await send(provider, 'POST', `${apis}/apiexports`, apiExport)
    const rbac = '/apis/rbac.authorization.k8s.io/v1'
    const rules = [{ apiGroups: ['apis.kcp.io'], resources: ['apiexports'], verbs: ['bind'] }]
    await send(provider, 'POST', `${rbac}/clusterroles`, { metadata: { name: 'bind' }, rules })
    await send(provider, 'POST', `${rbac}/clusterrolebindings`, {
      metadata: { name: 'bind' },
      subjects: [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name: 'system:authenticated' }],
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'bind' },
    })
    for (const name of ['example1', 'example2', 'example3']) await bind(name)
    const env = { KUBECONFIG: provider.kubeconfig }
    controller = stack.use(await startProcess({ name: 'kcp-provider', command: program, args: ['widgets'], env }))
  })
  afterEach(function () {
    if (this.currentTest?.state === 'failed') process.stderr.write(log().slice(-3000))
  })
  after(() => stack.disposeAsync())

  it('works in each consumer, on exported objects and claimed ConfigMaps of the same names, and records Events', async () => {
    for (const [at, name] of ['example1', 'example2', 'example3'].entries()) await give(name, 'same', at + 1)
    for (const [at, name] of ['example1', 'example2', 'example3'].entries()) await works(name, 'same', at + 1)
    const reasons = async (): Promise<unknown[]> =>
      (JSON.parse(await send(consumer('example1'), 'GET', events)) as KubeList).items.map(({ reason }) => reason)
    await waitFor(async () => (await reasons()).includes('Reconciled'), { what: 'an Event', ...within })
    const { metadata } = await read(consumer('example1'), `${configMaps}/same`)
    expect(metadata.annotations ?? {}).not.to.have.property('kcp.io/cluster')
  })

  it('engages a consumer that binds later', async () => {
    await bind('example4')
    await give('example4', 'late', 7)
    await works('example4', 'late', 7)
    expect(log()).to.include('bound example4')
  })

  it('disengages a consumer that unbinds', async () => {
    await send(consumer('example3'), 'DELETE', `${widgets}/same`)
    await send(consumer('example3'), 'DELETE', `${apis}/apibindings/widgets`)
    await waitFor(() => log().includes('unbound example3'), { what: 'the end of its binding', ...within })
    await send(consumer('example3'), 'POST', configMaps, configMap('after'))
    await send(consumer('example2'), 'POST', configMaps, configMap('after'))
    await waitFor(() => isAnswered('example2', 'after'), { what: 'another consumer', ...within })
    expect(await isAnswered('example3', 'after')).to.equal(false)
  })

  it('loses nothing when it is killed and starts again', async () => {
    await controller.kill()
    for (const name of ['example1', 'example2']) await give(name, 'meanwhile', 5)
    await bind('example5')
    await give('example5', 'meanwhile', 5)
    await controller.start()
    for (const name of ['example1', 'example2', 'example5']) await works(name, 'meanwhile', 5)
  })

  it('is killed and starts again in the middle of a staged rollout', async () => {
    const served = ['example1', 'example2', 'example4', 'example5']
    const statusOf = async () =>
      (await read(provider, `/apis/apis.kcp.io/v1alpha2/apiexports/widgets`))['status'] as {
        revision: number
        updatedConsumers: number
        rollout: { released: number }
      }
    const release = async (percent: number): Promise<void> => {
      const body = {
        spec: {
          resources: [{ name: 'widgets', group: 'example.com', schema: 'v2.widgets.example.com' }],
          rollout: { percent },
        },
      }
      const headers = ['Content-Type', 'application/merge-patch+json']
      const path = `${provider.base}/apis/apis.kcp.io/v1alpha2/apiexports/widgets`
      const { status, text } = await provider.http.request('PATCH', path, { body, headers })
      expect(status, text).to.equal(200)
    }
    const [version] = schema.spec.versions
    const { spec: size } = version?.schema.properties ?? { spec: { properties: {} } }
    const wider = { type: 'object', properties: { ...size.properties, color: { type: 'string' } } }
    const versions = [{ ...version, schema: { type: 'object', properties: { spec: wider } } }]
    const next = { ...schema, metadata: { name: 'v2.widgets.example.com' }, spec: { ...schema.spec, versions } }
    await send(provider, 'POST', `${apis}/apiresourceschemas`, next)
    const before = (await statusOf()).revision
    // By their ids, at least one of four consumers is nearly always among the first 75 %, and one is not.
    await release(75)
    await waitFor(async () => (await statusOf()).revision === before + 1, { what: 'the next revision', ...within })
    await waitFor(async () => (await statusOf()).rollout.released === 75, { what: 'the release of 75 %', ...within })
    await controller.kill()
    for (const name of served) await give(name, 'during', 3)
    await controller.start()
    for (const name of served) await works(name, 'during', 3)
    await release(100)
    const isDone = async (): Promise<boolean> => (await statusOf()).updatedConsumers === served.length
    await waitFor(isDone, { what: 'the new revision in all consumers', ...within })
    for (const name of served) {
      const colored = { ...widget('colored', 4), spec: { size: 4, color: 'red' } }
      await send(consumer(name), 'POST', widgets, colored)
      await waitFor(() => isDoubled(name, 'colored', 4), { what: `the Widget of ${name}`, ...within })
      expect((await read(consumer(name), `${widgets}/colored`))['spec']).to.include({ color: 'red', doubled: 8 })
    }
  })

  it('works on, when a claim is rejected, on what is left', async () => {
    const claims = binding.spec.permissionClaims.map((claim) => ({
      ...claim,
      state: claim.resource === 'configmaps' ? 'Rejected' : 'Accepted',
    }))
    const current = await read(consumer('example1'), `${apis}/apibindings/widgets`)
    const changed = { ...current, spec: { ...(current['spec'] as object), permissionClaims: claims } }
    await send(consumer('example1'), 'PUT', `${apis}/apibindings/widgets`, changed)
    const path = '/services/apiexport/provider/widgets/clusters/example1'
    const isRefused = async (): Promise<boolean> =>
      (await provider.http.request('GET', `${path}${configMaps}/same`)).status === 403
    await waitFor(isRefused, { what: 'the refusal', ...within })
    await give('example1', 'rejected', 9)
    await waitFor(() => isDoubled('example1', 'rejected', 9), { what: 'the Widget', ...within })
    expect(await isAnswered('example1', 'rejected')).to.equal(false)
    expect(controller.running).to.equal(true)
  })

  it('sees what our own libraries see through the view, in TypeScript and in Go', async () => {
    await controller.stop()
    const { status } = (await read(provider, `${apis}/apiexportendpointslices/widgets`)) as KubeObject & {
      status: { endpoints: { url: string }[] }
    }
    const url = status.endpoints[0]?.url ?? ''
    const program = (await ensurePrograms(['config-map-per-widget']))['config-map-per-widget']
    const env = { KUBECONFIG: provider.kubeconfig, VIEW: url }
    const inTypeScript = {
      name: 'view-in-typescript',
      command: process.execPath,
      args: [join(repositoryRoot, 'examples', 'config-map-per-widget.ts'), provider.kubeconfig],
      cwd: repositoryRoot,
      env: { VIEW: new URL(url).pathname },
    }
    const isKept = async (name: string, object: string): Promise<boolean> => {
      const { status: found, text } = await consumer(name).http.request(
        'GET',
        `/clusters/${name}${configMaps}/${object}`,
      )
      return found === 200 && (JSON.parse(text) as { data: { size?: string } }).data.size === '4'
    }
    for (const spec of [inTypeScript, { name: 'view-in-go', command: program, args: [], env }]) {
      await using running = await startProcess(spec)
      for (const name of ['example2', 'example4']) await send(consumer(name), 'POST', widgets, widget(spec.name, 4))
      for (const name of ['example2', 'example4'])
        await waitFor(() => isKept(name, spec.name), { what: `the ConfigMap in ${name}`, ...within })
      expect(running.running).to.equal(true)
    }
  })
})
