// Tests the plugins and Service allocation on the real write path: registry, watch cache, embedded store.
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, KubeObject } from '#apimachinery/meta/index.ts'
import { StatusError } from '#apimachinery/status/index.ts'
import { createWatchCache, type ClusterObjects, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import type { Store } from '#store/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { Registry } from './registry.ts'
import type { RegistryTarget } from './write.ts'
import { createAdmission, type AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { certificateSigners } from '#virtualapi/write/admission/certificate-signers.ts'
import { standardPlugins } from '#virtualapi/write/admission/plugins/index.ts'
import { installationFields } from '#virtualapi/write/admission/plugins/installation-fields.ts'
import { rbacWrites } from '#virtualapi/write/admission/rbac-writes.ts'
import { readParamsCheck } from '#virtualapi/write/policies/read-params-check.ts'
import { Conversions } from '#virtualapi/write/conversion/conversions.ts'

const noConversions = new Conversions({ outbound: { post: () => Promise.reject(new Error('there are no webhooks')) } })

const tenant: UserInfo = { name: 'alice', groups: [], extra: {}, realm: { kind: 'host' } }
const installation: UserInfo = { name: 'syncer', groups: [], extra: {}, realm: { kind: 'installation' } }
const registry = new Registry({
  admission: createAdmission({ plugins: standardPlugins() }),
  conversions: noConversions,
})
const catalog = new ClusterCatalog()
const { signal } = new AbortController()

describe('plugins about one kind', () => {
  it('let writes of other kinds wait for nothing', () => {
    const never = (): never => expect.fail('nobody is to be asked about a ConfigMap')
    const authorizer = { authorize: never, isSuperuser: never }
    const plugins = [
      rbacWrites(never),
      readParamsCheck({ authorizer, catalog: new ClusterCatalog() }),
      certificateSigners(authorizer),
    ]
    const configMap = { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' } }
    const definition = { info: { group: '', resource: 'configmaps' } }
    const ofConfigMap = { definition, subresource: '', operation: 'CREATE' } as unknown as AdmissionRequest
    expect(createAdmission({ plugins }).validate(ofConfigMap, configMap, undefined)).to.equal(undefined)
  })
})

describe('fields of the installation', () => {
  it('leave no empty labels, annotations and finalizers for webhooks to see, as kube-apiserver does', () => {
    const context = { user: tenant, cluster: {}, warnings: [] }
    const request = { context, operation: 'CREATE' } as unknown as AdmissionRequest
    const metadata = { name: 'a', labels: {}, annotations: {}, finalizers: [] }
    void installationFields.mutate?.(request, { kind: 'ConfigMap', apiVersion: 'v1', metadata }, undefined)
    expect(metadata).to.deep.equal({ name: 'a' })
  })
})

describe('standard admission plugins', () => {
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let objects: ClusterObjects
  let warnings: string[]

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-plugins-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
    objects = await watchCache.cluster('plugins001' as ClusterId, { signal })
    for (const name of ['default', 'shop', 'leaving'])
      await registry.create(target('namespaces', { namespace: '' }), named('Namespace', name))
    await registry.create(target('serviceaccounts'), named('ServiceAccount', 'default'))
  })
  beforeEach(() => {
    warnings = []
  })
  after(async () => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  function target(
    resource: string,
    { user = tenant, namespace = 'shop', group = '' }: { user?: UserInfo; namespace?: string; group?: string } = {},
  ): RegistryTarget {
    const definition = catalog.findBuiltIn({ group, version: 'v1', resource })
    if (definition === undefined) throw new Error(`${resource} is not built in`)
    const cluster = {
      name: 'plugins' as ClusterName,
      id: objects.cluster,
      uid: 'u',
      creationTimestamp: '2025-01-01T00:00:00Z',
      owners: [],
      deleting: false,
    }
    return {
      definition,
      signal,
      namespace,
      context: {
        cluster,
        objects,
        user,
        dryRun: false,
        fieldManager: '',
        work: new WorkBudget(),
        warnings,
        now: Date.now(),
      },
    }
  }

  function named(kind: string, name: string, rest: Record<string, unknown> = {}): KubeObject {
    return { apiVersion: 'v1', kind, metadata: { name }, ...rest }
  }

  async function refusal(work: Promise<unknown>): Promise<StatusError> {
    try {
      await work
    } catch (error) {
      if (error instanceof StatusError) return error
      throw error
    }
    throw new Error('it was not refused')
  }

  it('refuse a create in a missing namespace', async () => {
    const { status } = await refusal(
      registry.create(target('configmaps', { namespace: 'nope' }), named('ConfigMap', 'c')),
    )
    expect(status).to.include({ code: 404, message: 'namespaces "nope" not found' })
  })

  it("refuse a tenant's create in a logical cluster that is being deleted", async () => {
    const leaving = (user: UserInfo): RegistryTarget => {
      const there = target('configmaps', { user })
      return { ...there, context: { ...there.context, cluster: { ...there.context.cluster, deleting: true } } }
    }
    const { status } = await refusal(registry.create(leaving(tenant), named('ConfigMap', 'late')))
    expect(status.code).to.equal(403)
    expect(status.message).to.contain('is being deleted')
    await registry.create(leaving(installation), named('ConfigMap', 'late'))
  })

  it('refuse a create in a terminating namespace', async () => {
    await registry.delete(target('namespaces', { namespace: '' }), 'leaving', {})
    const { status } = await refusal(
      registry.create(target('configmaps', { namespace: 'leaving' }), named('ConfigMap', 'c')),
    )
    expect(status).to.include({
      code: 403,
      message:
        'configmaps "c" is forbidden: unable to create new content in namespace leaving because it is being terminated',
    })
    expect(status.details?.causes?.[0]?.reason).to.equal('NamespaceTerminating')
  })

  it('refuse to delete the default namespace', async () => {
    const { status } = await refusal(registry.delete(target('namespaces', { namespace: '' }), 'default', {}))
    expect(status).to.include({
      code: 403,
      message: 'namespaces "default" is forbidden: this namespace may not be deleted',
    })
  })

  it("revert a tenant's change of annotations that kcp sets", async () => {
    const placed = { 'kcp.dev/placed-on': 'eu', 'status.kcp.dev/eu': '{}', mine: '1' }
    const object = named('ConfigMap', 'annotated')
    object.metadata.annotations = { ...placed }
    const { object: created } = await registry.create(target('configmaps'), object)
    expect(created.metadata.annotations).to.deep.equal({ mine: '1' })
    expect(warnings).to.have.length(2)

    const change = (annotations: Record<string, string>) => ({
      subresource: '',
      change: (current: KubeObject | undefined) => ({
        ...named('ConfigMap', 'annotated'),
        metadata: { ...current?.metadata, annotations },
      }),
    })
    const ours = target('configmaps', { user: installation })
    await registry.update(ours, 'annotated', change(placed))
    warnings.length = 0
    const { object: updated } = await registry.update(
      target('configmaps'),
      'annotated',
      change({ 'kcp.dev/placed-on': 'us' }),
    )
    expect(updated.metadata.annotations).to.deep.equal({ 'kcp.dev/placed-on': 'eu', 'status.kcp.dev/eu': '{}' })
    expect(warnings).to.deep.equal(['metadata.annotations: "kcp.dev/placed-on" is set by kcp and was left unchanged'])
  })

  it('give pods a ServiceAccount, a priority and tolerations', async () => {
    const pod = named('Pod', 'p', { spec: { containers: [{ name: 'c', image: 'x' }] } })
    const { object } = await registry.create(target('pods'), pod)
    expect(object['spec']).to.include({ serviceAccountName: 'default', serviceAccount: 'default', priority: 0 })
    expect(object['spec']).to.have.property('tolerations').with.length(2)
  })

  it('mount a token into pods, unless the pod or its ServiceAccount says no', async () => {
    const mountsOf = async (spec: Record<string, unknown>): Promise<string[]> => {
      const pod = { ...named('Pod', ''), metadata: { generateName: 'p-' } }
      const containers = [{ name: 'c', image: 'x' }]
      const { object } = await registry.create(target('pods'), { ...pod, spec: { containers, ...spec } })
      const { volumes = [] } = object['spec'] as { volumes?: { name: string }[] }
      return volumes.map(({ name }) => name.replace(/-.{5}$/, ''))
    }
    await registry.create(
      target('serviceaccounts'),
      named('ServiceAccount', 'quiet', {
        automountServiceAccountToken: false,
        imagePullSecrets: [{ name: 'registry' }],
      }),
    )
    expect(await mountsOf({})).to.deep.equal(['kube-api-access'])
    expect(await mountsOf({ automountServiceAccountToken: false })).to.deep.equal([])
    expect(await mountsOf({ serviceAccountName: 'quiet' })).to.deep.equal([])
    expect(await mountsOf({ serviceAccountName: 'quiet', automountServiceAccountToken: true })).to.have.length(1)
    const { status } = await refusal(mountsOf({ serviceAccountName: 'nobody' }))
    expect(status.message).to.match(
      /^pods "p-.{5}" is forbidden: error looking up service account shop\/nobody: serviceaccount "nobody" not found$/,
    )
  })

  it('give claims the newest default StorageClass', async () => {
    const annotations = { 'storageclass.kubernetes.io/is-default-class': 'true' }
    const claimOf = async (spec: Record<string, unknown>): Promise<unknown> => {
      const object = { ...named('PersistentVolumeClaim', ''), metadata: { generateName: 'c-' } }
      const whole = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1' } }, ...spec }
      const written = await registry.create(target('persistentvolumeclaims'), { ...object, spec: whole })
      return (written.object['spec'] as { storageClassName?: string }).storageClassName
    }
    const classes = target('storageclasses', { namespace: '', group: 'storage.k8s.io' })
    expect(await claimOf({})).to.equal(undefined)
    for (const name of ['fast', 'slow']) {
      const object = { ...named('StorageClass', name), apiVersion: 'storage.k8s.io/v1', provisioner: 'example.com/p' }
      await registry.create(classes, { ...object, metadata: { name, ...(name === 'slow' ? { annotations } : {}) } })
    }
    expect(await claimOf({})).to.equal('slow')
    expect(await claimOf({ storageClassName: '' })).to.equal('')
    expect(await claimOf({ storageClassName: 'fast' })).to.equal('fast')
  })

  it('refuse a second default PriorityClass', async () => {
    const classes = target('priorityclasses', { namespace: '', group: 'scheduling.k8s.io' })
    const standard = (name: string): KubeObject => ({
      ...named('PriorityClass', name, { value: 0, globalDefault: true }),
      apiVersion: 'scheduling.k8s.io/v1',
    })
    await registry.create(classes, standard('one'))
    const { status } = await refusal(registry.create(classes, standard('two')))
    expect(status.message).to.equal(
      'priorityclasses.scheduling.k8s.io "two" is forbidden: PriorityClass one is already marked as default. Only one default can exist',
    )
    await registry.delete(classes, 'one', {})
  })

  it("refuse a tenant's nodeName and system priority, in pods and in templates", async () => {
    const labels = { app: 'w' }
    const withSpec = (name: string, more: object): [RegistryTarget, KubeObject][] => {
      const spec = { containers: [{ name: 'c', image: 'i' }], ...more }
      const template = { metadata: { labels }, spec: { ...spec, restartPolicy: 'Always' } }
      const workload = { ...named('Deployment', name), apiVersion: 'apps/v1' }
      return [
        [target('pods'), named('Pod', name, { spec })],
        [
          target('deployments', { group: 'apps' }),
          { ...workload, spec: { selector: { matchLabels: labels }, template } },
        ],
      ]
    }
    for (const [create, object] of withSpec('pinned', { nodeName: 'n' })) {
      const path = object.kind === 'Pod' ? 'spec' : 'spec.template.spec'
      const { status } = await refusal(registry.create(create, object))
      expect([status.code, status.message]).to.deep.equal([
        403,
        `${create.definition.info.resource}${object.kind === 'Pod' ? '' : '.apps'} "pinned" is forbidden: ` +
          `${path}.nodeName "n" is not allowed: the scheduler of a member cluster chooses the node`,
      ])
    }
    const [, urgent] = withSpec('urgent', { priorityClassName: 'system-node-critical' })
    const [create, object] = urgent!
    const { status } = await refusal(registry.create(create, object))
    expect(status.message).to.contain('spec.template.spec.priorityClassName "system-node-critical" is not allowed')
    const privileged = { ...create.context.cluster, podSecurity: 'privileged' as const }
    await registry.create({ ...create, context: { ...create.context, cluster: privileged } }, object)
  })

  it('refuse a pod whose PriorityClass is missing', async () => {
    const pod = named('Pod', 'q', { spec: { priorityClassName: 'nope', containers: [{ name: 'c', image: 'x' }] } })
    const { status } = await refusal(registry.create(target('pods'), pod))
    expect(status).to.include({
      code: 403,
      message: 'pods "q" is forbidden: no PriorityClass with name nope was found',
    })
  })

  it('set the defaults of a LimitRange, and refuse what is out of its bounds', async () => {
    const limits = [
      {
        type: 'Container',
        min: { memory: '50Mi' },
        max: { memory: '1Gi' },
        default: { memory: '200Mi' },
        defaultRequest: { memory: '100Mi' },
      },
      { type: 'Pod', max: { memory: '1536Mi' } },
      { type: 'PersistentVolumeClaim', max: { storage: '1Gi' } },
    ]
    const inLimits = (resource: string): RegistryTarget => target(resource, { namespace: 'limited' })
    await registry.create(target('namespaces', { namespace: '' }), named('Namespace', 'limited'))
    await registry.create(inLimits('serviceaccounts'), named('ServiceAccount', 'default'))
    await registry.create(inLimits('limitranges'), named('LimitRange', 'bounds', { spec: { limits } }))
    const pod = (name: string, ...memory: (string | undefined)[]): KubeObject =>
      named('Pod', name, {
        spec: {
          containers: memory.map((amount, index) => ({
            name: `c${index}`,
            image: 'x',
            ...(amount === undefined
              ? {}
              : { resources: { requests: { memory: amount }, limits: { memory: amount } } }),
          })),
        },
      })

    const { object } = await registry.create(inLimits('pods'), pod('free', undefined))
    expect((object['spec'] as { containers: { resources: unknown }[] }).containers[0]?.resources).to.deep.equal({
      requests: { memory: '100Mi' },
      limits: { memory: '200Mi' },
    })
    expect(object['status']).to.have.property('qosClass', 'Burstable')
    expect(object.metadata.annotations).to.deep.equal({
      'kubernetes.io/limit-ranger':
        'LimitRanger plugin set: memory request for container c0; memory limit for container c0',
    })

    const refused = async (resource: string, object: KubeObject): Promise<string> =>
      (await refusal(registry.create(inLimits(resource), object))).status.message ?? ''
    expect(await refused('pods', pod('small', '10Mi'))).to.equal(
      'pods "small" is forbidden: minimum memory usage per Container is 50Mi, but request is 10Mi',
    )
    expect(await refused('pods', pod('together', '1Gi', '1Gi'))).to.equal(
      'pods "together" is forbidden: maximum memory usage per Pod is 1536Mi, but limit is 2Gi',
    )
    const claim = named('PersistentVolumeClaim', 'big', {
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '2Gi' } } },
    })
    expect(await refused('persistentvolumeclaims', claim)).to.equal(
      'persistentvolumeclaims "big" is forbidden: maximum storage usage per PersistentVolumeClaim is 1Gi, but request is 2Gi',
    )
    // A namespace without a LimitRange has no bounds.
    await registry.create(target('pods'), pod('small', '10Mi'))
  })

  it('apply the RuntimeClass of a pod, and refuse a pod whose RuntimeClass is missing', async () => {
    const pod = (name: string, spec: Record<string, unknown>): KubeObject =>
      named('Pod', name, { spec: { containers: [{ name: 'c', image: 'x' }], ...spec } })
    const { status } = await refusal(registry.create(target('pods'), pod('r', { runtimeClassName: 'nope' })))
    expect(status).to.include({
      code: 403,
      message: 'pods "r" is forbidden: pod rejected: RuntimeClass "nope" not found',
    })
    await registry.create(target('runtimeclasses', { namespace: '', group: 'node.k8s.io' }), {
      apiVersion: 'node.k8s.io/v1',
      kind: 'RuntimeClass',
      metadata: { name: 'vm' },
      handler: 'vm',
      overhead: { podFixed: { memory: '64Mi' } },
      scheduling: { nodeSelector: { vm: 'yes' } },
    })
    const { object } = await registry.create(target('pods'), pod('in-vm', { runtimeClassName: 'vm' }))
    expect(object['spec']).to.deep.include({ overhead: { memory: '64Mi' }, nodeSelector: { vm: 'yes' } })
    const conflict = pod('elsewhere', { runtimeClassName: 'vm', nodeSelector: { vm: 'no' } })
    expect((await refusal(registry.create(target('pods'), conflict))).status.message).to.contain(
      'conflict: runtimeClass.scheduling.nodeSelector[vm] = yes; pod.spec.nodeSelector[vm] = no',
    )
    const heavy = pod('heavy', { overhead: { memory: '1Gi' } })
    expect((await refusal(registry.create(target('pods'), heavy))).status.message).to.contain(
      'Pod Overhead set without corresponding RuntimeClass',
    )
  })

  it('store an Event of events.k8s.io with the field names of core/v1', async () => {
    const definition = target('events', { group: 'events.k8s.io' }).definition
    const event = {
      apiVersion: 'events.k8s.io/v1',
      kind: 'Event',
      metadata: { name: 'told', namespace: 'shop' },
      note: 'it happened',
      reason: 'Test',
      type: 'Normal',
      action: 'Do',
      eventTime: '2020-01-01T00:00:00.000001Z',
      reportingController: 'tester',
      reportingInstance: 'here',
      regarding: { kind: 'Pod', namespace: 'shop', name: 'p' },
    }
    const kept = definition.toStorage?.(event)
    if (kept === undefined) throw new Error('events are kept in the form they come in')
    const { object } = await registry.create(target('events', { group: 'events.k8s.io' }), kept)
    expect(object).to.deep.include({ apiVersion: 'v1', message: 'it happened', reportingComponent: 'tester' })
    expect(object['involvedObject']).to.deep.equal({ kind: 'Pod', namespace: 'shop', name: 'p' })
    expect(object).to.not.have.any.keys('regarding', 'deprecatedSource')
    const { selectableFields } = definition.strategy
    expect(selectableFields['reportingController']?.(object)).to.equal('tester')
    expect(selectableFields['regarding.name']?.(object)).to.equal('p')
  })

  describe('and Services', () => {
    interface Spec {
      clusterIP: string
      ports: { nodePort: number }[]
    }
    const service = (name: string, spec: Record<string, unknown> = {}): KubeObject =>
      named('Service', name, { spec: { selector: { a: 'b' }, ports: [{ port: 80 }], ...spec } })

    it('get different addresses and node ports when created at the same time', async () => {
      const written = await Promise.all(
        Array.from({ length: 100 }, (_, index) =>
          registry.create(target('services'), service(`s${index}`, { type: 'NodePort' })),
        ),
      )
      const specs = written.map(({ object }) => object['spec'] as Spec)
      expect(new Set(specs.map(({ clusterIP }) => clusterIP)).size).to.equal(100)
      expect(new Set(specs.map(({ ports }) => ports[0]?.nodePort)).size).to.equal(100)
    })

    it('cannot take the address of another Service until that is deleted', async () => {
      await registry.create(target('services'), service('first', { clusterIP: '10.96.7.7' }))
      const { status } = await refusal(
        registry.create(target('services'), service('second', { clusterIP: '10.96.7.7' })),
      )
      expect(status.details?.causes?.[0]?.message).to.contain('provided IP is already allocated')
      await registry.delete(target('services'), 'first', {})
      const { object } = await registry.create(target('services'), service('second', { clusterIP: '10.96.7.7' }))
      expect(object['spec']).to.have.property('clusterIP', '10.96.7.7')
    })

    it('lead to no name of the nameservers of members, by create, update and change of the type', async () => {
      const alias = (name: string, externalName: string, type = 'ExternalName'): KubeObject =>
        named('Service', name, { spec: { type, externalName, ...(type === 'ClusterIP' && { ports: [{ port: 80 }] }) } })
      const refused = ['web.abcdefghij-shop.svc.kcp', 'web.abcdefghij-shop.svc.kcp.', 'web.shop.abcdefghij.kcp', 'kcp']
      for (const [index, externalName] of refused.entries())
        for (const type of ['ExternalName', 'ClusterIP']) {
          const { message } = await refusal(
            registry.create(target('services'), alias(`to-${index}`, externalName, type)),
          )
          expect(message).to.contain(`spec.externalName "${externalName}" is not allowed`)
        }
      for (const [index, externalName] of ['kcp.example.com', 'notkcp', 'web.shop.svc.cluster.local'].entries())
        await registry.create(target('services'), alias(`free-${index}`, externalName))
      const change = (externalName: string) => ({
        subresource: '',
        change: (current: KubeObject | undefined): KubeObject => ({
          ...(current ?? named('Service', 'free-0')),
          spec: { ...(current?.['spec'] as object), externalName },
        }),
      })
      await refusal(registry.update(target('services'), 'free-0', change('web.abcdefghij-shop.svc.kcp')))
      // What is stored stays; our own processes may write it.
      const ours = target('services', { user: installation })
      await registry.create(ours, alias('kept', 'web.abcdefghij-shop.svc.kcp'))
      await registry.update(target('services'), 'kept', {
        subresource: '',
        change: (current) => ({
          ...(current ?? named('Service', 'kept')),
          metadata: { ...current?.metadata, labels: { touched: 'yes' } },
        }),
      })
    })

    it('keep address and node port when the manifest is PUT again', async () => {
      const { object: before } = await registry.create(target('services'), service('again', { type: 'NodePort' }))
      const { object: after } = await registry.update(target('services'), 'again', {
        subresource: '',
        change: () => service('again', { type: 'NodePort', ports: [{ port: 80, targetPort: 8080 }] }),
      })
      const [a, b] = [before['spec'] as Spec, after['spec'] as Spec]
      expect(b.clusterIP).to.equal(a.clusterIP)
      expect(b.ports[0]?.nodePort).to.equal(a.ports[0]?.nodePort)
    })
  })
})
