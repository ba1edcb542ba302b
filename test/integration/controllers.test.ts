// The controllers of src/controllers over the real virtual API server on a real embedded store.
import { expect } from 'chai'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  rootClusterName,
  type ClusterName,
  type GroupVersionResource,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import { startControllers } from '#controllers/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import { kcpCrds } from '#crds/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import { createMetrics, silentLogger } from '#telemetry/index.ts'
import { createVirtualApi, openPki, rootCluster, type VirtualApi } from '#virtualapi/index.ts'

const core = (resource: string): GroupVersionResource => ({ group: '', version: 'v1', resource })
const clusterRoles = { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles' }
const crds = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' }
const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' }

describe('the controllers of logical clusters', function () {
  this.timeout(60_000)
  let stack: AsyncDisposableStack
  let life: AbortController
  let signal: AbortSignal
  let api: VirtualApi
  let root: KubeClient
  let rootCa: string
  /** Writes of the controllers, such as `create acme serviceaccounts`. */
  /** Once, at any time after the start: the APIService of the kinds of kcp itself. */
  const ofOwnKinds = 'create root apiservices'
  let writes: string[]
  /** Lists of the controllers, such as `acme namespaces`. */
  let reads: string[]
  /** Names of the objects they decoded, per reconcile. */
  let decoded: string[][]

  beforeEach(async () => {
    stack = new AsyncDisposableStack()
    life = new AbortController()
    signal = life.signal
    writes = []
    reads = []
    decoded = []
    const dir = await mkdtemp(join(tmpdir(), 'kcp-controllers-'))
    stack.defer(() => rm(dir, { recursive: true, force: true }))
    const store = stack.use(await openSqliteStore({ file: join(dir, 'store.db') }))
    const pki = await openPki(dir)
    rootCa = pki.servingCa
    const born = rootCluster({ instanceId: store.instanceId, creationTimestamp: '2026-01-01T00:00:00Z' })
    api = stack.use(
      await createVirtualApi({ store, pki, root: born, log: silentLogger, metrics: createMetrics(), signal }),
    )
    root = api.client(rootClusterName)
    for (const crd of kcpCrds()) await root.create(crds, crd, { signal }).catch(tolerate('AlreadyExists'))
    await api.follow(root)
  })
  afterEach(async () => {
    life.abort(new Error('the test is over'))
    await stack.disposeAsync()
  })

  async function startLoops(): Promise<void> {
    stack.use(
      await startControllers({
        cluster: (name) => noted(name, api.client(name as ClusterName)),
        rootCa,
        signClientRequest: () => Promise.reject(new Error('nothing is signed here')),
        graph: noting(api.graph),
        log: silentLogger,
        signal,
      }),
    )
  }

  function noting(graph: VirtualApi['graph']): VirtualApi['graph'] {
    return new Proxy(graph, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        if (property !== 'select') return value.bind(target) as unknown
        return async (...args: Parameters<typeof graph.select>) => {
          const found = await target.select(...args)
          decoded.push([])
          return found.map((selected) => ({
            ...selected,
            object: () => {
              decoded.at(-1)?.push(selected.key.name)
              return selected.object()
            },
          }))
        }
      },
    })
  }

  function noted(name: string, client: KubeClient): KubeClient {
    return {
      get: (...args) => client.get(...args),
      tryGet: (...args) => client.tryGet(...args),
      list: (gvr, ...args) => (reads.push(`${name} ${gvr.resource}`), client.list(gvr, ...args)),
      watch: (...args) => client.watch(...args),
      raw: (...args) => client.raw(...args),
      stream: (...args) => client.stream(...args),
      create: (gvr, ...args) => (writes.push(`create ${name} ${gvr.resource}`), client.create(gvr, ...args)),
      update: (gvr, ...args) => (writes.push(`update ${name} ${gvr.resource}`), client.update(gvr, ...args)),
      patch: (gvr, ...args) => (writes.push(`patch ${name} ${gvr.resource}`), client.patch(gvr, ...args)),
      delete: (gvr, ...args) => (writes.push(`delete ${name} ${gvr.resource}`), client.delete(gvr, ...args)),
    }
  }

  /** The first state of one object, from a watch, that satisfies `condition`; undefined after its deletion. */
  async function until(
    client: KubeClient,
    gvr: GroupVersionResource,
    ref: { namespace?: string; name: string },
    condition: (object: KubeObject | undefined) => boolean,
  ) {
    const { namespace, name } = ref
    const deadline = AbortSignal.timeout(20_000)
    const list = await client.list(gvr, {
      ...(namespace === undefined ? {} : { namespace }),
      fieldSelector: `metadata.name=${name}`,
      signal: deadline,
    })
    let object = list.items[0]
    if (condition(object)) return object
    const { resourceVersion = '0' } = list.metadata
    const scope = {
      ...(namespace === undefined ? {} : { namespace }),
      fieldSelector: `metadata.name=${name}`,
      resourceVersion,
      signal: deadline,
    }
    for await (const event of client.watch(gvr, scope)) {
      if (event.type === 'BOOKMARK') continue
      object = event.type === 'DELETED' ? undefined : event.object
      if (condition(object)) return object
    }
    throw new Error(`the watch on ${gvr.resource} ${name} ended`)
  }
  const isThere = (object: KubeObject | undefined): boolean => object !== undefined
  const isGone = (object: KubeObject | undefined): boolean => object === undefined
  const createCluster = async (name: string): Promise<KubeClient> => {
    const seen = new Promise<void>((resolve) => {
      const stop = api.directory.onChange(({ after }) => {
        if (after?.name !== name) return
        stop()
        resolve()
      })
    })
    await root.create(
      logicalClusters,
      { apiVersion: 'kcp.dev/v1alpha1', kind: 'LogicalCluster', metadata: { name } },
      { signal },
    )
    await seen
    return api.client(name as ClusterName)
  }
  const createNamespace = (client: KubeClient, name: string) =>
    client.create(core('namespaces'), { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }, { signal })

  it('write nothing for a new logical cluster, and the required objects for a new namespace', async () => {
    await startLoops()
    const clients: KubeClient[] = []
    for (let i = 0; i < 20; i++) clients.push(await createCluster(`c${i}`))
    for (const [i, client] of clients.entries()) {
      if (i % 10 === 0) await createNamespace(client, 'shop')
    }
    for (const i of [0, 10]) {
      await until(clients[i]!, core('serviceaccounts'), { namespace: 'shop', name: 'default' }, isThere)
      const map = await until(clients[i]!, core('configmaps'), { namespace: 'shop', name: 'kube-root-ca.crt' }, isThere)
      expect(map?.['data']).to.deep.equal({ 'ca.crt': rootCa })
    }
    expect(writes.filter((write) => write !== ofOwnKinds).sort()).to.deep.equal([
      'create c0 configmaps',
      'create c0 serviceaccounts',
      'create c10 configmaps',
      'create c10 serviceaccounts',
    ])
  })

  it('restore deleted or edited objects, in the initial namespaces too', async () => {
    const acme = await createCluster('acme')
    await startLoops()
    const before = await acme.get(core('serviceaccounts'), { namespace: 'default', name: 'default' }, { signal })
    await acme.delete(core('serviceaccounts'), { namespace: 'default', name: 'default' }, { signal })
    const after = await until(
      acme,
      core('serviceaccounts'),
      { namespace: 'default', name: 'default' },
      (object) => object !== undefined && object.metadata.uid !== before.metadata.uid,
    )
    expect(after?.metadata.uid).to.be.a('string')
    await acme.patch(
      core('configmaps'),
      { namespace: 'kube-system', name: 'kube-root-ca.crt' },
      'merge',
      { metadata: { labels: { mine: 'yes' } }, data: { 'ca.crt': 'forged', more: 'x' } },
      { signal },
    )
    const healed = await until(
      acme,
      core('configmaps'),
      { namespace: 'kube-system', name: 'kube-root-ca.crt' },
      (object) => (object?.['data'] as Record<string, string>)['ca.crt'] === rootCa,
    )
    expect(healed?.['data']).to.deep.equal({ 'ca.crt': rootCa })
    expect(healed?.metadata.labels).to.deep.equal({ mine: 'yes' })
  })

  it('restore the initial FlowSchemas and priority levels, unless they are kept by hand', async () => {
    await startLoops()
    const acme = await createCluster('acme')
    const gvr = { group: 'flowcontrol.apiserver.k8s.io', version: 'v1' }
    const flows = { ...gvr, resource: 'flowschemas' }
    const levels = { ...gvr, resource: 'prioritylevelconfigurations' }
    const initial = await acme.get<KubeObject>(flows, { name: 'probes' }, { signal })
    const precedence = (object: KubeObject | undefined) =>
      (object?.['spec'] as { matchingPrecedence?: number } | undefined)?.matchingPrecedence
    const merge = (name: string, patch: object) => acme.patch(flows, { name }, 'merge', patch, { signal })
    const byHand = { metadata: { annotations: { 'apf.kubernetes.io/autoupdate-spec': 'false' } } }
    await merge('service-accounts', { ...byHand, spec: { matchingPrecedence: 77 } })
    await merge('probes', { spec: { matchingPrecedence: 77 } })
    await merge('exempt', byHand)
    await acme.delete(flows, { name: 'global-default' }, { signal })
    await acme.delete(levels, { name: 'exempt' }, { signal })
    const changed = await until(acme, flows, { name: 'probes' }, (object) => precedence(object) !== 77)
    expect(changed?.['spec']).to.deep.equal(initial['spec'])
    const isMarked = ({ metadata }: KubeObject) =>
      metadata.annotations?.['apf.kubernetes.io/autoupdate-spec'] === 'true'
    await until(acme, flows, { name: 'exempt' }, (object) => object !== undefined && isMarked(object))
    const hasCondition = (object: KubeObject | undefined) =>
      JSON.stringify(object?.['status'] ?? {}).includes('"Found"')
    await until(acme, flows, { name: 'global-default' }, hasCondition)
    const level = await until(acme, levels, { name: 'exempt' }, isThere)
    expect(level?.['spec']).to.deep.include({ type: 'Exempt' })
    expect(precedence(await acme.get(flows, { name: 'service-accounts' }, { signal }))).to.equal(77)
  })

  it('check the types of a policy again when the kind that it is about is defined later, changed or deleted', async () => {
    await startLoops()
    const acme = await createCluster('acme')
    const policies = { group: 'admissionregistration.k8s.io', version: 'v1', resource: 'validatingadmissionpolicies' }
    const rule = { apiGroups: ['shop.test'], apiVersions: ['v1'], resources: ['widgets'], operations: ['*'] }
    const spec = {
      matchConstraints: { resourceRules: [rule] },
      validations: [{ expression: 'object.spec.size > 1' }],
    }
    await acme.create(
      policies,
      {
        ...{ apiVersion: 'admissionregistration.k8s.io/v1', kind: 'ValidatingAdmissionPolicy' },
        ...{ metadata: { name: 'sizes' }, spec },
      },
      { signal },
    )
    const warned = (policy: KubeObject | undefined): boolean =>
      JSON.stringify(policy?.['status']).includes('no matching')
    const untilWarned = (expected: boolean) =>
      until(acme, policies, { name: 'sizes' }, (policy) => warned(policy) === expected)
    expect(warned(await acme.get<KubeObject>(policies, { name: 'sizes' }, { signal }))).to.equal(false)
    const definition = (type: string): KubeObject => ({
      ...{ apiVersion: 'apiextensions.k8s.io/v1', kind: 'CustomResourceDefinition' },
      metadata: { name: 'widgets.shop.test' },
      spec: {
        ...{ group: 'shop.test', scope: 'Cluster', names: { plural: 'widgets', kind: 'Widget' } },
        versions: [{ ...{ name: 'v1', served: true, storage: true }, schema: { openAPIV3Schema: schemaOf(type) } }],
      },
    })
    const schemaOf = (type: string) => ({
      type: 'object',
      properties: { spec: { type: 'object', properties: { size: { type } } } },
    })
    await acme.create(crds, definition('string'), { signal })
    await untilWarned(true)
    const current = await acme.get<KubeObject>(crds, { name: 'widgets.shop.test' }, { signal })
    await acme.update(crds, { ...current, spec: definition('integer')['spec'] }, { signal })
    await untilWarned(false)
  })

  it('write a deleted APIService of a built-in group version again at the next start', async () => {
    const acme = await createCluster('acme')
    const apiServices = { group: 'apiregistration.k8s.io', version: 'v1', resource: 'apiservices' }
    const [builtIn, ofPlacements] = ['v1.apps', 'v1alpha1.kcp.dev']
    await acme.delete(apiServices, { name: builtIn }, { signal })
    await acme.delete(apiServices, { name: ofPlacements }, { signal })
    expect(await acme.tryGet(apiServices, { name: builtIn }, { signal })).to.equal(undefined)
    await startLoops()
    const back = await until(acme, apiServices, { name: builtIn }, isThere)
    expect(back?.['spec']).to.deep.include({ group: 'apps', version: 'v1', groupPriorityMinimum: 17800 })
    expect(back?.metadata.labels).to.deep.equal({ 'kube-aggregator.kubernetes.io/automanaged': 'onstart' })
  })

  it('delete a terminating namespace with all its content, and nothing elsewhere', async () => {
    await startLoops()
    const [acme, bobs] = [await createCluster('acme'), await createCluster('bobs')]
    for (const client of [acme, bobs]) {
      await createNamespace(client, 'shop')
      await until(client, core('serviceaccounts'), { namespace: 'shop', name: 'default' }, isThere)
      await client.create(
        core('secrets'),
        { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'shop' } },
        { signal },
      )
    }
    await acme.delete(core('namespaces'), { name: 'shop' }, { signal })
    await until(acme, core('namespaces'), { name: 'shop' }, isGone)
    expect((await acme.list(core('secrets'), { signal })).items).to.deep.equal([])
    expect((await bobs.list(core('secrets'), { signal })).items).to.have.length(1)
    expect(writes.filter((write) => write.includes('bobs'))).to.have.members([
      'create bobs configmaps',
      'create bobs serviceaccounts',
    ])
  })

  it('report what blocks the deletion of a namespace, and continue when it is gone', async () => {
    await startLoops()
    const acme = await createCluster('acme')
    await createNamespace(acme, 'shop')
    const held = { namespace: 'shop', name: 'held' }
    await acme.create(
      core('configmaps'),
      { apiVersion: 'v1', kind: 'ConfigMap', metadata: { ...held, finalizers: ['example.com/hold'] } },
      { signal },
    )
    await acme.delete(core('namespaces'), { name: 'shop' }, { signal })
    const conditionsOf = (object: KubeObject | undefined) =>
      (object?.['status'] as { conditions?: { type: string; status: string; message: string }[] } | undefined)
        ?.conditions ?? []
    const stuck = await until(acme, core('namespaces'), { name: 'shop' }, (object) => conditionsOf(object).length > 0)
    const told = Object.fromEntries(
      conditionsOf(stuck)
        .filter(({ status }) => status === 'True')
        .map(({ type, message }) => [type, message]),
    )
    expect(told).to.deep.equal({
      NamespaceContentRemaining: 'Some resources are remaining: configmaps. has 1 resource instances',
      NamespaceFinalizersRemaining:
        'Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances',
    })
    await acme.patch(core('configmaps'), held, 'merge', { metadata: { finalizers: null } }, { signal })
    await until(acme, core('namespaces'), { name: 'shop' }, isGone)
  })

  it('delete the Secrets of a namespace after its pods', async () => {
    await startLoops()
    const acme = await createCluster('acme')
    await createNamespace(acme, 'shop')
    await until(acme, core('serviceaccounts'), { namespace: 'shop', name: 'default' }, isThere)
    const pod = { namespace: 'shop', name: 'web' }
    const spec = { containers: [{ name: 'c', image: 'i' }] }
    await acme.create(
      core('pods'),
      { apiVersion: 'v1', kind: 'Pod', metadata: { ...pod, finalizers: ['example.com/hold'] }, spec },
      { signal },
    )
    await acme.create(
      core('secrets'),
      { apiVersion: 'v1', kind: 'Secret', metadata: { name: 's', namespace: 'shop' } },
      { signal },
    )
    await acme.delete(core('namespaces'), { name: 'shop' }, { signal })
    const type = 'NamespaceContentRemaining'
    await until(acme, core('namespaces'), { name: 'shop' }, (object) =>
      JSON.stringify(object?.['status'] ?? {}).includes(type),
    )
    expect((await acme.list(core('secrets'), { namespace: 'shop', signal })).items).to.have.length(1)
    await acme.patch(core('pods'), pod, 'merge', { metadata: { finalizers: null } }, { signal })
    // Deletes the pod as a kubelet does after the grace period: nothing runs pods here.
    await acme.delete(core('pods'), pod, { gracePeriodSeconds: 0, signal }).catch(() => undefined)
    await until(acme, core('namespaces'), { name: 'shop' }, isGone)
  })

  it('aggregate rules into ClusterRoles, through several levels', async () => {
    await startLoops()
    const acme = await createCluster('acme')
    const rule = { apiGroups: ['example.com'], resources: ['things'], verbs: ['get'] }
    const labels = { 'rbac.authorization.k8s.io/aggregate-to-view': 'true' }
    const role: KubeObject = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'things', labels },
      rules: [rule],
    }
    const holds = (object: KubeObject | undefined): boolean => JSON.stringify(object?.['rules']).includes('example.com')
    await acme.create(clusterRoles, role, { signal })
    for (const name of ['view', 'edit', 'admin']) await until(acme, clusterRoles, { name }, holds)
    await acme.delete(clusterRoles, { name: 'things' }, { signal })
    for (const name of ['view', 'edit', 'admin']) await until(acme, clusterRoles, { name }, (object) => !holds(object))
    const others = writes.filter((write) => write !== ofOwnKinds && !write.startsWith('patch acme clusterroles'))
    expect(others).to.deep.equal([])
  })

  it('do not create an aggregated ClusterRole again that is deleted together with those it is made of', async () => {
    await startLoops()
    const acme = await createCluster('acme')
    const rule = (i: number) => ({ apiGroups: ['example.com'], resources: [`things${i}`], verbs: ['get'] })
    const role = (name: string, more: object): KubeObject => ({
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name } },
      ...more,
    })
    const names = ['sum', ...Array.from({ length: 20 }, (_, i) => `part${i}`)]
    for (let round = 0; round < 5; round++) {
      const clusterRoleSelectors = [{ matchLabels: { team: 'a' } }]
      await acme.create(clusterRoles, role('sum', { aggregationRule: { clusterRoleSelectors }, rules: [] }), { signal })
      for (const [i, name] of names.slice(1).entries())
        await acme.create(clusterRoles, role(name, { metadata: { name, labels: { team: 'a' } }, rules: [rule(i)] }), {
          signal,
        })
      await until(acme, clusterRoles, { name: 'sum' }, (one) => JSON.stringify(one?.['rules']).includes('things19'))
      // As helm uninstall does.
      await Promise.all(names.toReversed().map((name) => acme.delete(clusterRoles, { name }, { signal })))
      // The controller has seen all of it when it has aggregated what comes next.
      const probe = role('probe', { metadata: { name: 'probe', labels: { team: 'b' } }, rules: [rule(0)] })
      await acme.create(clusterRoles, probe, { signal })
      const selectors = [{ matchLabels: { team: 'b' } }]
      const next = role('next', { aggregationRule: { clusterRoleSelectors: selectors }, rules: [] })
      await acme.create(clusterRoles, next, { signal })
      await until(acme, clusterRoles, { name: 'next' }, (one) => JSON.stringify(one?.['rules']).includes('things0'))
      const { items } = await acme.list<KubeObject>(clusterRoles, { signal })
      expect(items.map(({ metadata }) => metadata.name)).not.to.include('sum')
      for (const name of ['probe', 'next']) await acme.delete(clusterRoles, { name }, { signal })
    }
  })

  it('do not decode ClusterRoles that no other one selects', async () => {
    await startLoops()
    const acme = await createCluster('acme')
    const rule = { apiGroups: ['example.com'], resources: ['things'], verbs: ['get'] }
    const role = (name: string, labels: Record<string, string>, more: object = {}): KubeObject => ({
      ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', metadata: { name, labels }, rules: [rule] },
      ...more,
    })
    await Promise.all(
      Array.from({ length: 150 }, (_, i) => acme.create(clusterRoles, role(`r${i}`, { app: 'x' }), { signal })),
    )
    const selects = (matchLabels: object): object => ({
      rules: [],
      aggregationRule: { clusterRoleSelectors: [{ matchLabels }] },
    })
    await acme.create(clusterRoles, role('own', {}, selects({ team: 'a' })), { signal })
    const gathered = (resource: string) => (object: KubeObject | undefined) =>
      JSON.stringify(object?.['rules']).includes(resource)
    decoded.length = 0
    await acme.create(clusterRoles, role('part', { team: 'a' }), { signal })
    await until(acme, clusterRoles, { name: 'own' }, gathered('things'))
    await acme.patch(clusterRoles, { name: 'part' }, 'merge', { metadata: { labels: { team: 'b' } } }, { signal })
    await until(acme, clusterRoles, { name: 'own' }, (object) => !gathered('things')(object))
    // Selects all ClusterRoles, whatever their labels.
    await acme.create(clusterRoles, role('all', {}, { ...selects({}), rules: [] }), { signal })
    await until(acme, clusterRoles, { name: 'all' }, gathered('things'))
    const few = decoded.slice(
      0,
      decoded.findIndex((names) => names.includes('all')),
    )
    expect(few.flat().filter((name) => /^r\d+$/.test(name))).to.deep.equal([])
    expect(few.flat()).to.include.members(['own', 'part'])
    expect(reads.filter((read) => read.endsWith('clusterroles'))).to.deep.equal([])
  })
})
