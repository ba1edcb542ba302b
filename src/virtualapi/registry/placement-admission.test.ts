// The plugins about placement on the real write path: registry, hub, embedded store; the members are given.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect } from 'chai'
import type { ClusterId, ClusterName, KubeObject } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import { WorkBudget } from '../../apimachinery/work-budget/index.ts'
import { createHub, type ClusterObjects, type Hub } from '../../store/hub/index.ts'
import { openSqliteStore } from '../../store/sqlite/index.ts'
import type { Store } from '../../store/index.ts'
import type { UserInfo } from '../authn/user-info.ts'
import { ClusterCatalog } from '../catalog/cluster-catalog.ts'
import { Conversions } from '../conversion/conversions.ts'
import { Registry, type RegistryTarget } from './registry.ts'
import { readFacts, stampRevision } from '../resources/object-bytes.ts'
import { createAdmission } from '../admission/admission.ts'
import { placementPreview } from '../admission/placement-preview.ts'
import type { Fleet } from '../admission/placement-rules.ts'
import { placementTargets } from '../admission/placement-targets.ts'

type MemberCluster = ReturnType<Fleet['all']>[number]
type Placement = ReturnType<Fleet['adminPlacements']>[number]

const outbound = { post: () => Promise.reject(new Error('there are no webhooks')) }
const member = (name: string, region: string, placed = 0): MemberCluster => ({
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'MemberCluster',
  metadata: { name, labels: { region } },
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
  let hub: Hub
  let objects: ClusterObjects
  let rules: Placement[] = []
  let members: MemberCluster[] = []
  const fleet = { all: () => members, adminPlacements: () => rules }
  const plugins = [placementTargets(() => fleet), placementPreview(() => fleet)]
  const registry = new Registry({
    admission: createAdmission({ plugins }),
    conversions: new Conversions({ outbound }),
  })
  const catalog = new ClusterCatalog()

  before(async () => {
    directory = await mkdtemp(join(tmpdir(), 'kcp-placing-'))
    store = await openSqliteStore({ file: join(directory, 'objects.db') })
    hub = await createHub(store, { stamp: stampRevision, readFacts, signal })
    objects = await hub.cluster('placing001' as ClusterId, { signal })
    await registry.create(target('namespaces').target, object('Namespace', 'shop', { tier: 'web' }))
  })
  beforeEach(() => {
    members = [member('east', 'us'), member('north', 'eu', 3), member('west', 'eu')]
    rules = [rule('eu-only', { require: { labelSelector: { matchLabels: { region: 'eu' } } } })]
  })
  after(async () => {
    await hub[Symbol.asyncDispose]()
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
