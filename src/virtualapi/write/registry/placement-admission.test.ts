// The plugins about placement on the real write path: registry, watch cache, embedded store; the members are given.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { createWatchCache, type ClusterObjects, type WatchCache } from '#store/watch-cache/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'
import type { Store } from '#store/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { ClusterCatalog } from '#virtualapi/catalog/cluster-catalog.ts'
import { Conversions } from '#virtualapi/write/conversion/conversions.ts'
import { Registry } from './registry.ts'
import type { RegistryTarget } from './write.ts'
import { readFacts, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { createAdmission } from '#virtualapi/write/admission/admission.ts'
import { placementPreview } from '#virtualapi/write/admission/placement-preview.ts'
import type { Fleet } from '#virtualapi/write/admission/placement-rules.ts'
import { placementTargets } from '#virtualapi/write/admission/placement-targets.ts'
import { separationWarnings } from '#virtualapi/write/admission/separation-warnings.ts'

type MemberCluster = ReturnType<Fleet['all']>[number]
type Placement = ReturnType<Fleet['adminPlacements']>[number]

const outbound = { post: () => Promise.reject(new Error('there are no webhooks')) }
const member = (name: string, region: string, placed = 0): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name, labels: { region } },
  spec: { serviceNetwork: { type: 'Flat' } },
  status: {
    placed,
    conditions: [{ type: 'Ready', status: 'True', reason: 'Up', message: '', lastTransitionTime: '' }],
  },
})
const rule = (name: string, spec: Placement['spec']): Placement => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'Placement',
  metadata: { name },
  ...(spec && { spec }),
})
const tenant: UserInfo = { name: 'alice', groups: [], extra: {}, realm: { kind: 'host' } }
const installation: UserInfo = { name: 'operator', groups: [], extra: {}, realm: { kind: 'installation' } }
const { signal } = new AbortController()

describe('admission of placement', () => {
  let directory: string
  let store: Store
  let watchCache: WatchCache
  let objects: ClusterObjects
  let rules: Placement[] = []
  let members: MemberCluster[] = []
  const fleet = { all: () => members, adminPlacements: () => rules }
  const plugins = [placementTargets(() => fleet), placementPreview(() => fleet), separationWarnings(() => fleet)]
  const registry = new Registry({
    admission: createAdmission({ plugins }),
    conversions: new Conversions({ outbound }),
  })
  const catalog = new ClusterCatalog()

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-placing-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    watchCache = await createWatchCache(store, { stamp: stampRevision, readFacts, signal })
    objects = await watchCache.cluster('placing001' as ClusterId, { signal })
    await registry.create(target('namespaces').target, object('Namespace', 'shop', { tier: 'web' }))
  })
  beforeEach(() => {
    members = [member('east', 'us'), member('north', 'eu', 3), member('west', 'eu')]
    rules = [rule('eu-only', { require: { labelSelector: { matchLabels: { region: 'eu' } } } })]
  })
  after(async () => {
    await watchCache[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
    await rm(directory, { recursive: true })
  })

  const target = (resource: string, { user = tenant, dryRun = false } = {}) => {
    const group = resource === 'deployments' ? 'apps' : ''
    const definition = catalog.findBuiltIn({ group, version: 'v1', resource })
    if (definition === undefined) throw new Error(`${resource} is not built in`)
    const warnings: string[] = []
    const of: RegistryTarget = {
      definition,
      signal,
      namespace: resource === 'namespaces' ? '' : 'shop',
      context: {
        cluster: {
          name: 'placing' as ClusterName,
          id: objects.cluster,
          uid: 'u',
          creationTimestamp: '2025-01-01T00:00:00Z',
          labels: { tier: 'gold' },
          owners: [],
          deleting: false,
        },
        ...{ objects, user, dryRun, fieldManager: '', work: new WorkBudget(), warnings, now: Date.now() },
      },
    }
    return { target: of, warnings }
  }
  const object = (kind: string, name: string, labels = {}, annotations = {}): KubeObject => ({
    apiVersion: 'v1',
    kind,
    metadata: { name, labels, annotations },
  })
  const deployment = (name: string, clusters?: string): KubeObject => ({
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, ...(clusters !== undefined && { annotations: { 'kcp.dev/clusters': clusters } }) },
    spec: {
      selector: { matchLabels: { app: name } },
      template: { metadata: { labels: { app: name } }, spec: { containers: [{ name: 'c', image: 'x' }] } },
    },
  })
  const refusal = async (written: Promise<unknown>): Promise<string> =>
    await written.then(
      () => 'it was not refused',
      (error: unknown) => (isStatusError(error, 'Forbidden') ? error.message : `another error: ${String(error)}`),
    )
  const retarget = (clusters: string) => ({
    subresource: '',
    change: (current: KubeObject | undefined): KubeObject => ({
      ...(current ?? deployment('none')),
      metadata: { ...current?.metadata, annotations: { 'kcp.dev/clusters': clusters } },
    }),
  })

  it('refuses a forbidden target of a tenant, and names the rule and what is allowed', async () => {
    const why =
      'annotation kcp.dev/clusters: Placement "eu-only" of the administrators does not allow member cluster "east"; allowed: "north", "west"'
    expect(await refusal(registry.create(target('deployments').target, deployment('web', 'east')))).to.equal(
      `deployments.apps "web" is forbidden: ${why}`,
    )
    await registry.create(target('deployments').target, deployment('web', 'west'))
    const moved = registry.update(target('deployments').target, 'web', retarget('west,east'))
    expect(await refusal(moved)).to.contain(why)
    const annotated = registry.create(
      target('namespaces').target,
      object('Namespace', 'other', {}, { 'kcp.dev/clusters': 'east' }),
    )
    expect(await refusal(annotated)).to.equal(`namespaces "other" is forbidden: ${why}`)
  })

  it('refuses it by every subresource, too', async () => {
    await registry.create(target('deployments').target, deployment('parts', 'west'))
    for (const subresource of ['status', 'scale', 'anything']) {
      const moved = registry.update(target('deployments').target, 'parts', { ...retarget('east'), subresource })
      expect(await refusal(moved), subresource).to.contain('does not allow member cluster "east"')
    }
  })

  it('refuses by rules for the namespace and for the logical cluster alone', async () => {
    const clusters = ['east']
    rules = [
      rule('other-tier', { logicalClusterSelector: { matchLabels: { tier: 'bronze' } }, clusters }),
      rule('other-namespace', { namespaceSelector: { matchLabels: { tier: 'batch' } }, clusters }),
    ]
    await registry.create(target('deployments').target, deployment('free', 'west'))
    rules = [rule('ours', { namespaceSelector: { matchLabels: { tier: 'web' } }, clusters })]
    expect(await refusal(registry.create(target('deployments').target, deployment('bound', 'west')))).to.contain(
      'Placement "ours"',
    )
  })

  it('leaves what is stored, what is not placed and what kcp writes alone', async () => {
    rules = []
    await registry.create(target('deployments').target, deployment('old', 'east'))
    rules = [rule('eu-only', { clusters: ['west'] })]
    const change = (current: KubeObject | undefined): KubeObject => ({
      ...(current ?? deployment('none')),
      metadata: { ...current?.metadata, labels: { touched: 'yes' } },
    })
    await registry.update(target('deployments').target, 'old', { subresource: '', change })
    await registry.create(target('configmaps').target, object('ConfigMap', 'c', {}, { 'kcp.dev/clusters': 'east' }))
    await registry.create(target('deployments', { user: installation }).target, deployment('ours', 'east'))
  })

  describe('of a workload that is taken away from others of its namespace', () => {
    const inNamespace = (resource: string, namespace: string, options = {}) => {
      const made = target(resource, options)
      return { ...made, target: { ...made.target, namespace } }
    }
    const service = (name: string, app: string): KubeObject => ({
      ...{ apiVersion: 'v1', kind: 'Service', metadata: { name } },
      spec: { selector: { app }, ports: [{ port: 80 }] },
    })
    const withNetworks = (networks: Record<string, string>): void => {
      members = Object.entries(networks).map(([name, type]) => ({
        ...member(name, 'eu'),
        spec: { serviceNetwork: { type } } as NonNullable<MemberCluster['spec']>,
      }))
    }
    const networks = ['None', 'Flat', 'Gateway']
    let count = 0
    /** `db` runs in `from`; what is told when `web` is sent to `to`. */
    const told = async ({
      from,
      to,
      move,
      dryRun,
    }: {
      from: string[]
      to: string
      move: boolean
      dryRun: boolean
    }): Promise<string[]> => {
      const namespace = `apart-${count++}`
      await registry.create(target('namespaces').target, object('Namespace', namespace))
      const db = deployment('db')
      const state = { state: 'Serving' }
      const placed = JSON.stringify(Object.fromEntries(from.map((name) => [name, state])))
      const annotations = { 'kcp.dev/placed-on': placed }
      const ours = inNamespace('deployments', namespace, { user: installation }).target
      await registry.create(ours, { ...db, metadata: { name: 'db', annotations } })
      for (const [name, app] of [
        ['db', 'db'],
        ['front', 'web'],
        ['other', 'x'],
      ] as const)
        await registry.create(inNamespace('services', namespace).target, service(name, app))
      const { target: of, warnings } = inNamespace('deployments', namespace, { dryRun })
      if (!move) {
        await registry.create(of, deployment('web', to))
        return warnings
      }
      await registry.create(inNamespace('deployments', namespace).target, deployment('web'))
      await registry.update(of, 'web', retarget(to))
      return warnings
    }
    const apart = (warnings: string[]): string[] =>
      warnings.filter((text) => text.includes('will not reach each other'))

    it('warns at the write and in the dry run, with the names of workloads and Services', async () => {
      rules = []
      withNetworks({ east: 'None', west: 'None' })
      for (const [move, dryRun] of [
        [true, false],
        [true, true],
        [false, false],
        [false, true],
      ] as const) {
        const [warning, ...more] = apart(await told({ from: ['east'], to: 'west', move, dryRun }))
        expect(more).to.deep.equal([])
        expect(warning).to.match(
          /^kcp.dev\/clusters: pods in "west" and pods of Deployment "db" in "east" will not reach each other, .* not connected; it concerns Services "db", "front"; to move all workloads together, annotate the namespace "apart-\d+" instead$/,
        )
      }
    })
    it('warns of workloads that have a target of their own when the namespace gets another one', async () => {
      rules = []
      withNetworks({ east: 'None', west: 'None' })
      const namespace = `apart-${count}`
      await told({ from: ['east'], to: 'east', move: true, dryRun: false })
      const change = (clusters: string) => ({
        subresource: '',
        change: (): KubeObject => object('Namespace', namespace, {}, { 'kcp.dev/clusters': clusters }),
      })
      for (const [clusters, expected] of [
        ['east', 0],
        ['west', 1],
      ] as const) {
        const { target: of, warnings } = target('namespaces')
        await registry.update(of, namespace, change(clusters))
        expect(apart(warnings)).to.have.length(expected)
        if (expected > 0)
          expect(warnings[0]).to.contain('pods of Deployment "web" in "east"').and.contain('have a target of their own')
      }
    })
    it('is silent about a change of anything else', async () => {
      rules = []
      withNetworks({ east: 'None', west: 'None' })
      const namespace = `apart-${count}`
      await told({ from: ['east'], to: 'west', move: true, dryRun: false })
      const { target: of, warnings } = inNamespace('deployments', namespace)
      const change = (current: KubeObject | undefined): KubeObject => ({
        ...(current ?? deployment('none')),
        metadata: { ...current?.metadata, labels: { touched: 'yes' } },
      })
      await registry.update(of, 'web', { subresource: '', change })
      expect(warnings).to.deep.equal([])
    })
    it('warns in just those cases in which some pod reaches no pod of the other workload', async () => {
      rules = []
      const names = ['a', 'b', 'c']
      const reach = (types: Record<string, string>, from: string, to: string[]): boolean =>
        to.some((name) => name === from || (types[from] === types[name] && types[from] !== 'None'))
      const picks = [['a'], ['b'], ['a', 'b'], ['b', 'c']]
      for (const one of networks)
        for (const two of networks)
          for (const from of picks)
            for (const to of picks) {
              const types: Record<string, string> = { a: one, b: two, c: 'Flat' }
              withNetworks(Object.fromEntries(names.map((name) => [name, types[name] ?? ''])))
              const isApart =
                !to.every((name) => reach(types, name, from)) || !from.every((name) => reach(types, name, to))
              const warnings = apart(await told({ from, to: to.join(','), move: true, dryRun: false }))
              expect(warnings.length, `${one} ${two} ${from.join()} ${to.join()}`).to.equal(isApart ? 1 : 0)
            }
    })
  })

  it('tells a dry run alone where the workload would run', async () => {
    const dry = async (workload: KubeObject): Promise<string[]> => {
      const { target: of, warnings } = target('deployments', { dryRun: true })
      await registry.create(of, workload)
      return warnings
    }
    expect(await dry(deployment('new'))).to.deep.equal(['would run in west'])
    expect(await dry(deployment('new', 'north'))).to.deep.equal(['would run in north'])
    expect(await dry(deployment('new', 'later'))).to.deep.equal(['would be held: there is no member cluster "later"'])
    expect(await dry(deployment('new', 'none'))).to.deep.equal(['would run in no member cluster'])
    const { target: real, warnings } = target('deployments')
    await registry.create(real, deployment('real'))
    expect(warnings).to.deep.equal([])
    members = []
    expect(await dry(deployment('new'))).to.deep.equal([])
  })
})
