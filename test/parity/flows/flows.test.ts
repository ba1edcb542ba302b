// Compares the FlowSchema and the PriorityLevelConfiguration that responses name, between a real kube-apiserver and a
// logical cluster.
import { expect } from 'chai'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { waitFor } from '#test/support/index.ts'
import type { Side } from '#test/parity/support/side.ts'
import { startTwoServers, type TwoServers } from '#test/parity/support/two-servers.ts'

const group = '/apis/flowcontrol.apiserver.k8s.io/v1'
const everybody = 'testers'

interface Asked {
  readonly user: string
  readonly groups?: readonly string[]
  readonly method?: string
  readonly path: string
}

const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases'
const maps = '/api/v1/namespaces/default/configmaps'
const requests: readonly Asked[] = [
  { user: 'eve', path: maps },
  { user: 'eve', groups: ['system:masters'], path: maps },
  { user: 'eve', path: `${maps}?watch=true&timeoutSeconds=1` },
  { user: 'eve', path: '/apis' },
  { user: 'eve', path: '/openapi/v2' },
  { user: 'kubelet', groups: ['system:nodes'], path: '/api/v1/nodes' },
  { user: 'kubelet', groups: ['system:nodes'], method: 'DELETE', path: '/api/v1/nodes/none' },
  { user: 'kubelet', groups: ['system:nodes'], path: maps },
  { user: 'system:kube-controller-manager', path: `${leases}/none` },
  { user: 'system:kube-scheduler', path: `${leases}/none` },
  { user: 'system:kube-controller-manager', path: maps },
  { user: 'system:serviceaccount:kube-system:a', groups: ['system:serviceaccounts:kube-system'], path: maps },
  { user: 'system:serviceaccount:default:a', groups: ['system:serviceaccounts'], path: maps },
  { user: 'own', path: maps },
  { user: 'own', path: '/api/v1/namespaces/kube-system/configmaps' },
  { user: 'own', path: '/api/v1/nodes' },
  { user: 'own', path: '/api/v1/namespaces/default/pods/none/status' },
  { user: 'own', path: '/apis/apps' },
  { user: 'own', path: '/version' },
  { user: 'eve', path: '/version' },
  { user: 'eve', path: '/livez' },
  { user: 'dangling', path: maps },
]

function flow(name: string, level: string, rules: readonly JsonObject[]): JsonObject {
  return {
    ...{ apiVersion: 'flowcontrol.apiserver.k8s.io/v1', kind: 'FlowSchema', metadata: { name } },
    spec: { matchingPrecedence: 60, priorityLevelConfiguration: { name: level }, rules: [...rules] },
  }
}

const user = (name: string): JsonObject[] => [{ kind: 'User', user: { name } }]
const own = flow('own', 'workload-high', [
  {
    subjects: user('own'),
    resourceRules: [
      { verbs: ['get', 'list'], apiGroups: [''], resources: ['configmaps', 'pods/status'], namespaces: ['default'] },
    ],
    nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/apis/*'] }],
  },
])
const dangling = flow('dangling', 'none', [
  {
    subjects: user('dangling'),
    resourceRules: [{ verbs: ['*'], apiGroups: ['*'], resources: ['*'], namespaces: ['*'], clusterScope: true }],
  },
])

describe("the flow that an answer names equals a real server's", function () {
  this.timeout(180_000)
  let servers: TwoServers
  before(async () => {
    servers = await startTwoServers({ name: 'flows', untouched: true })
    for (const side of [servers.real, servers.ours]) await prepare(side)
  })
  after(() => servers[Symbol.asyncDispose]())

  for (const asked of requests)
    it(`${asked.user} ${(asked.groups ?? []).join(',')} ${asked.method ?? 'GET'} ${asked.path}`, async () => {
      const [real, ours] = await Promise.all([named(servers.real, asked), named(servers.ours, asked)])
      expect(real[0]).to.be.a('string')
      expect(ours).to.deep.equal(real)
    })

  it('condition Dangling tells at all times whether the priority level of a FlowSchema exists', async () => {
    const both = <T>(ask: (side: Side) => Promise<T>): Promise<T[]> =>
      Promise.all([servers.real, servers.ours].map((side) => ask(side)))
    const expectSame = async (name: string, status: string): Promise<void> => {
      const [real, ours] = await both((side) => danglingCondition(side, name, status))
      expect(ours).to.deep.equal(real)
    }
    for (const name of ['exempt', 'global-default', 'own']) await expectSame(name, 'False')
    await expectSame('dangling', 'True')
    const none = {
      ...{ apiVersion: 'flowcontrol.apiserver.k8s.io/v1', kind: 'PriorityLevelConfiguration' },
      metadata: { name: 'none' },
      spec: { type: 'Limited', limited: { nominalConcurrencyShares: 1, limitResponse: { type: 'Reject' } } },
    }
    await both((side) => side.request('POST', `${group}/prioritylevelconfigurations`, { body: none }))
    await expectSame('dangling', 'False')
    for (const { text } of await both((side) => side.request('GET', '/metrics')))
      expect(text).to.match(/^apiserver_flowcontrol_nominal_limit_seats\{priority_level="none"\} [1-9]/m)
    await both((side) => side.request('DELETE', `${group}/prioritylevelconfigurations/none`))
    await expectSame('dangling', 'True')
  })
})

/** The condition Dangling of a FlowSchema once it has this status. */
async function danglingCondition(side: Side, name: string, status: string): Promise<unknown> {
  let found: JsonObject | undefined
  const isKnown = async (): Promise<boolean> => {
    const { text } = await side.request('GET', `${group}/flowschemas/${name}`)
    const { conditions = [] } = (JSON.parse(text) as { status: { conditions?: JsonObject[] } }).status
    found = conditions.find(({ type }) => type === 'Dangling')
    return found?.['status'] === status
  }
  await waitFor(isKnown, { what: `Dangling=${status} of ${name}`, deadlineMs: 30_000 })
  return { ...found, lastTransitionTime: '*' }
}

async function prepare(side: Side): Promise<void> {
  const binding = {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRoleBinding', metadata: { name: everybody } },
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'cluster-admin' },
    subjects: [{ kind: 'Group', name: everybody, apiGroup: 'rbac.authorization.k8s.io' }],
  }
  await side.request('POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', { body: binding })
  for (const body of [own, dangling]) await side.request('POST', `${group}/flowschemas`, { body })
  const isEffective = async (): Promise<boolean> => (await named(side, { user: 'own', path: maps }))[0] === 'own'
  await waitFor(isEffective, { what: 'the FlowSchema to be in effect', deadlineMs: 30_000 })
}

/** The names of the FlowSchema and of the priority level in the headers of the answer. */
async function named(side: Side, { user: name, groups = [], method = 'GET', path }: Asked) {
  const headers = { 'impersonate-user': name, 'impersonate-group': [...groups, everybody] }
  const { headers: got } = await side.request(method, path, { headers })
  return [
    await nameOf(side, 'flowschemas', got['x-kubernetes-pf-flowschema-uid']),
    await nameOf(side, 'prioritylevelconfigurations', got['x-kubernetes-pf-prioritylevel-uid']),
  ]
}

async function nameOf(side: Side, resource: string, uid: unknown): Promise<string | undefined> {
  const { items } = JSON.parse((await side.request('GET', `${group}/${resource}`)).text) as { items: KubeObject[] }
  return items.find(({ metadata }) => metadata.uid === uid)?.metadata.name
}
