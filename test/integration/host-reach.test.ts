// The reach of a stolen token of each of our processes in the host, computed from the rendered chart. A new right must
// be written here, too; one that makes a token become another identity fails wherever it comes from.
import { expect } from 'chai'
import { join } from 'node:path'
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { ensurePrograms, repositoryRoot, runCommand } from '#test/support/index.ts'
import { reachOf, type Reach } from './rbac-reach.ts'

const kinds = ['logicalclusters', 'memberclusters', 'placements']
/** The API server only waits until the host serves these. */
const awaited = ['adoptions', 'volumemoves', 'snapshotstores', 'logicalclustersnapshots', 'snapshotschedules']
const allKinds = [...kinds, ...awaited]
const read = ['get', 'list', 'watch']
const definitions = [
  ...['create', ...read].map((verb) => `${verb} apiextensions.k8s.io/customresourcedefinitions in *`),
  ...[...allKinds.map((kind) => `${kind}.kcp.dev`), 'records.storage.kcp.dev'].flatMap((name) =>
    ['patch', 'update'].map((verb) => `${verb} apiextensions.k8s.io/customresourcedefinitions ${name} in *`),
  ),
]
const on = (verbs: readonly string[], what: string): string[] => verbs.map((verb) => `${verb} ${what}`)
const here = 'in kcp-system'

const apiserver = [
  ...kinds.flatMap((kind) => on(read, `kcp.dev/${kind} in *`)),
  ...awaited.map((kind) => `list kcp.dev/${kind} in *`),
  // status.agent: certificates of the agents of members in pull mode.
  'patch kcp.dev/memberclusters/status in *',
  // Condition AuthenticationValid, and status.usage.
  'patch kcp.dev/logicalclusters/status in *',
  // Tenants create, change and delete children of their logical cluster through its API.
  ...on(['create', 'delete', 'update'], 'kcp.dev/logicalclusters in *'),
  ...on(['create', 'delete', 'deletecollection', 'patch', 'update', ...read], 'storage.kcp.dev/records in *'),
  ...on(['create', ...read], '/namespaces in *'),
  ...on(['create', 'patch'], 'apiregistration.k8s.io/apiservices v1alpha1.virtual.kcp.dev in *'),
  'create authentication.k8s.io/tokenreviews in *',
  'create authorization.k8s.io/subjectaccessreviews in *',
  ...definitions,
  ...on(['create', 'update', 'delete', ...read], `coordination.k8s.io/leases ${here}`),
  // Keys of the installation, and kubeconfigs of members: they are what it works with.
  `get /secrets ${here}`,
  ...['kcp-keys', 'kcp-serving-certificates', 'kcp-replica-authority', 'kcp-metrics-client'].map(
    (name) => `update /secrets ${name} ${here}`,
  ),
  ...on(['create', 'patch', ...read], `/configmaps kcp-apiserver ${here}`),
  ...on(['create', 'patch', 'update', ...read], `/configmaps kcp-console ${here}`),
  ...on(['create', 'delete', 'get', 'list', 'patch'], `/configmaps ${here}`),
  'use role of the host/extension-apiserver-authentication-reader in kube-system',
]
const operator = [
  ...[...kinds, 'adoptions'].flatMap((kind) => on([...read, 'patch', 'update'], `kcp.dev/${kind} in *`)),
  ...on([...read, 'create', 'delete', 'patch'], 'kcp.dev/volumemoves in *'),
  ...['snapshotstores', 'snapshotschedules'].flatMap((kind) => on(read, `kcp.dev/${kind} in *`)),
  ...on([...read, 'create', 'delete', 'patch'], 'kcp.dev/logicalclustersnapshots in *'),
  ...[...kinds, 'adoptions', 'volumemoves'].flatMap((kind) => on(['patch', 'update'], `kcp.dev/${kind}/status in *`)),
  ...['snapshotstores', 'logicalclustersnapshots', 'snapshotschedules'].map(
    (kind) => `patch kcp.dev/${kind}/status in *`,
  ),
  ...[...kinds.slice(0, 2), 'logicalclustersnapshots'].map((kind) => `update kcp.dev/${kind}/finalizers in *`),
  ...['', 'events.k8s.io'].flatMap((group) => on(['create', 'patch'], `${group}/events in *`)),
  'get /namespaces kcp-system in *',
  ...definitions,
  ...on(['create', 'update', ...read], `coordination.k8s.io/leases ${here}`),
  ...on(['get', 'patch', 'delete'], `/secrets ${here}`),
  ...on(read, `/configmaps kcp-apiserver ${here}`),
  ...on(['create', 'delete', 'get', 'list', 'patch'], `/configmaps ${here}`),
]
const diagnose = [
  ...kinds.map((kind) => `list kcp.dev/${kind} in *`),
  'get apiregistration.k8s.io/apiservices v1alpha1.virtual.kcp.dev in *',
  `get /configmaps kcp-apiserver ${here}`,
  ...on(['get', 'list'], `coordination.k8s.io/leases ${here}`),
]
const unregister = ['delete apiregistration.k8s.io/apiservices v1alpha1.virtual.kcp.dev in *']
const profiles = [
  ...on(['create', 'patch', ...read], `multicluster.x-k8s.io/clusterprofiles ${here}`),
  `patch multicluster.x-k8s.io/clusterprofiles/status ${here}`,
]
/** As an admin of the host: values.yaml says so where it is switched on. */
const kubeconfigs = on(['create', 'get', 'patch', 'delete', 'list', 'watch'], '/secrets in *')

const nobody = { becomes: [], admin: [] }
const alone = (rights: readonly string[]): Reach => ({ rights: [...new Set(rights)].sort(), ...nobody })
const withoutKubeconfigs = {
  'kcp-system/kcp-apiserver': alone(apiserver),
  'kcp-system/kcp-operator': alone(operator),
  'kcp-system/kcp-diagnose': alone(diagnose),
  'kcp-system/kcp-unregister': alone(unregister),
}
const withKubeconfigs = {
  ...withoutKubeconfigs,
  'kcp-system/kcp-operator': {
    rights: [...new Set([...apiserver, ...operator, ...diagnose, ...unregister, ...kubeconfigs])].sort(),
    becomes: ['kcp-system/kcp-apiserver', 'kcp-system/kcp-diagnose', 'kcp-system/kcp-unregister'],
    admin: ['create /secrets in *'],
  },
}

const cases: readonly { title: string; set: readonly string[]; reach: Readonly<Record<string, Reach>> }[] = [
  { title: 'with the default values', set: [], reach: withKubeconfigs },
  { title: 'without Secrets of kubeconfigs', set: ['kubeconfigSecrets.enabled=false'], reach: withoutKubeconfigs },
  {
    title: 'with ClusterProfiles and metrics',
    set: ['kubeconfigSecrets.enabled=false', 'clusterProfiles.enabled=true', 'monitoring.serviceMonitor.enabled=true'],
    reach: { ...withoutKubeconfigs, 'kcp-system/kcp-operator': alone([...operator, ...profiles]) },
  },
  {
    title: 'with embedded storage, and the roles that are bound there',
    set: ['storage.mode=embedded'],
    reach: {
      'kcp-system/kcp-apiserver': alone(apiserver.filter((right) => right.endsWith(here) || right.startsWith('use'))),
      'kcp-system/kcp-operator': alone([]),
      'kcp-system/kcp-diagnose': alone([]),
    },
  },
]

describe('a token of one of our processes in the host', function () {
  this.timeout(120_000)
  const objectsOf = (text: string): KubeObject[] =>
    parseAllDocuments(text)
      .map((document) => document.toJS() as KubeObject | null)
      .filter((object) => object !== null)

  for (const { title, set, reach } of cases)
    it(`reaches what is written here and becomes nobody else, ${title}`, async () => {
      const { helm } = await ensurePrograms(['helm'])
      const values = set.flatMap((one) => ['--set', one])
      const args = ['template', 'kcp', join(repositoryRoot, 'charts/kcp'), '--kube-version', '1.34.3', ...values]
      const { stdout } = await runCommand(helm, [...args, '--api-versions', 'monitoring.coreos.com/v1'])
      expect(Object.fromEntries(reachOf(objectsOf(stdout)))).to.deep.equal(reach)
    })

  it('reaches the same with config/default', async () => {
    const { kubectl } = await ensurePrograms(['kubectl'])
    const { stdout } = await runCommand(kubectl, ['kustomize', join(repositoryRoot, 'config/default')])
    const found = Object.fromEntries(reachOf(objectsOf(stdout)))
    const { 'kcp-system/kcp-unregister': _, ...reach } = withKubeconfigs
    const rights = reach['kcp-system/kcp-operator'].rights.filter((right) => !unregister.includes(right))
    const becomes = ['kcp-system/kcp-apiserver', 'kcp-system/kcp-diagnose']
    const operatorThere = { ...reach['kcp-system/kcp-operator'], rights, becomes }
    expect(found).to.deep.equal({ ...reach, 'kcp-system/kcp-operator': operatorThere })
  })

  describe('as computed', () => {
    const account = (name: string): KubeObject => ({
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name, namespace: 'a' },
    })
    const role = (kind: 'Role' | 'ClusterRole', rule: object): KubeObject[] => [
      {
        apiVersion: 'v1',
        kind,
        metadata: { name: 'r', ...(kind === 'Role' && { namespace: 'a' }) },
        rules: [rule],
      },
      {
        ...{
          apiVersion: 'v1',
          kind: `${kind}Binding`,
          metadata: { name: 'r', ...(kind === 'Role' && { namespace: 'a' }) },
        },
        roleRef: { kind, name: 'r' },
        subjects: [{ kind: 'ServiceAccount', name: 'one', namespace: 'a' }],
      },
    ]
    for (const { group = '', resource, verb, becomes = false, admin = false } of [
      { resource: 'secrets', verb: 'create', becomes: true },
      { resource: 'secrets', verb: 'update' },
      { resource: 'serviceaccounts/token', verb: 'create', becomes: true },
      { resource: 'serviceaccounts', verb: 'impersonate', becomes: true },
      { resource: 'pods', verb: 'create', becomes: true },
      { resource: 'pods/exec', verb: 'create', becomes: true },
      { resource: 'pods/exec', verb: 'get', becomes: true },
      { resource: 'pods/ephemeralcontainers', verb: 'patch', becomes: true },
      { group: 'apps', resource: 'deployments', verb: 'patch', becomes: true },
      { group: 'batch', resource: 'cronjobs', verb: 'update', becomes: true },
      { group: 'apps', resource: 'deployments', verb: 'get' },
      { group: 'rbac.authorization.k8s.io', resource: 'clusterroles', verb: 'bind', admin: true },
      { group: 'rbac.authorization.k8s.io', resource: 'clusterroles', verb: 'escalate', admin: true },
      { resource: 'users', verb: 'impersonate', admin: true },
      { group: 'certificates.k8s.io', resource: 'signers', verb: 'approve', admin: true },
      { group: 'admissionregistration.k8s.io', resource: 'mutatingwebhookconfigurations', verb: 'patch', admin: true },
      { group: '*', resource: '*', verb: '*', admin: true },
    ])
      it(`${verb} ${group}/${resource} ${becomes ? 'makes a token become the others of its namespace' : admin ? 'makes an admin' : 'makes nobody'}`, () => {
        const rule = { apiGroups: [group], resources: [resource], verbs: [verb] }
        const objects = [account('one'), account('two'), ...role('Role', rule)]
        const found = reachOf(objects).get('a/one')
        expect(found?.becomes).to.deep.equal(becomes ? ['a/two'] : [])
        expect(found?.admin.length).to.equal(admin ? 1 : 0)
        const everywhere = reachOf([account('one'), ...role('ClusterRole', rule)]).get('a/one')
        expect(everywhere?.admin.length).to.equal(admin || becomes ? 1 : 0)
      })
  })
})
