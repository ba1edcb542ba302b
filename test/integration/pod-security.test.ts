// Pod security of a logical cluster: what the LogicalCluster says is enforced on pods and on templates, whoever writes them
// inside and whatever labels a tenant puts on namespaces.
import { expect } from 'chai'
import type { JsonObject, KubeObject } from '../../src/apimachinery/meta/index.ts'
import { startServedApi, untilTrue, type ServedApi, type ServedTenant } from './served-api.ts'

const logicalClusters = { group: 'kcp.dev', version: 'v1alpha1', resource: 'logicalclusters' } as const
const labels = { app: 'web' }
const template = (spec: JsonObject) => ({
  metadata: { labels },
  spec: { restartPolicy: 'Always', containers: [{ name: 'web', image: 'i' }], ...spec },
})
const selector = { matchLabels: labels }
const hostNetwork = 'violates PodSecurity \\"baseline:latest\\": host namespaces (hostNetwork=true)'

/** Path and object of each kind with pods, around a pod's spec. */
const kinds: readonly { path: string; kind: string; apiVersion: string; wrap: (spec: JsonObject) => object }[] = [
  { path: 'api/v1', kind: 'Pod', apiVersion: 'v1', wrap: (spec) => template(spec) },
  { path: 'api/v1', kind: 'PodTemplate', apiVersion: 'v1', wrap: (spec) => ({ template: template(spec) }) },
  {
    path: 'api/v1',
    kind: 'ReplicationController',
    apiVersion: 'v1',
    wrap: (spec) => ({ spec: { selector: labels, template: template(spec) } }),
  },
  ...['Deployment', 'ReplicaSet', 'DaemonSet'].map((kind) => ({
    path: 'apis/apps/v1',
    kind,
    apiVersion: 'apps/v1',
    wrap: (spec: JsonObject) => ({ spec: { selector, template: template(spec) } }),
  })),
  {
    path: 'apis/apps/v1',
    kind: 'StatefulSet',
    apiVersion: 'apps/v1',
    wrap: (spec) => ({ spec: { serviceName: 'web', selector, template: template(spec) } }),
  },
  {
    path: 'apis/batch/v1',
    kind: 'Job',
    apiVersion: 'batch/v1',
    wrap: (spec) => ({ spec: { template: template({ ...spec, restartPolicy: 'Never' }) } }),
  },
  {
    path: 'apis/batch/v1',
    kind: 'CronJob',
    apiVersion: 'batch/v1',
    wrap: (spec) => ({
      spec: {
        schedule: '* * * * *',
        jobTemplate: { spec: { template: template({ ...spec, restartPolicy: 'Never' }) } },
      },
    }),
  },
]

describe('pod security of a logical cluster', function () {
  this.timeout(60_000)
  let served: ServedApi
  let acme: ServedTenant

  before(async () => {
    served = await startServedApi()
    acme = await served.tenant('acme')
    const headers = { 'content-type': 'application/merge-patch+json' }
    const metadata = { labels: { 'pod-security.kubernetes.io/enforce': 'privileged' } }
    const body = JSON.stringify({ metadata })
    await acme.request('PATCH', '/clusters/acme/api/v1/namespaces/default', { headers, body })
  })
  after(() => served[Symbol.asyncDispose]())

  const create = async (row: (typeof kinds)[number], name: string, spec: JsonObject) => {
    const { wrap, kind, apiVersion, path } = row
    const body = { apiVersion, kind, ...wrap(spec) } as unknown as KubeObject
    body.metadata = { ...body.metadata, name, namespace: 'default' }
    return await acme.request('POST', `/clusters/acme/${path}/namespaces/default/${kind.toLowerCase()}s`, { body })
  }
  const setLevel = async (enforce: string): Promise<void> => {
    const patch = { spec: { podSecurity: { enforce } } }
    await served.root.patch(logicalClusters, { name: 'acme' }, 'merge', patch, { signal: served.signal })
    await untilTrue(() => served.api.directory.byId(acme.id)?.podSecurity === enforce, `the level ${enforce}`)
  }

  for (const row of kinds)
    it(`baseline, the default, refuses a ${row.kind} with hostNetwork and takes an ordinary one`, async () => {
      const refused = await create(row, 'bad', { hostNetwork: true })
      expect(refused.status).to.equal(403)
      expect(refused.text).to.contain(hostNetwork)
      expect((await create(row, 'good', {})).status).to.equal(201)
    })

  it('an update is refused only if it changes what is beyond the level', async () => {
    await setLevel('privileged')
    const [, , , deployment] = kinds
    if (deployment === undefined) throw new Error('no row for Deployments')
    expect((await create(deployment, 'kept', { hostNetwork: true })).status).to.equal(201)
    await setLevel('baseline')
    const path = '/clusters/acme/apis/apps/v1/namespaces/default/deployments/kept'
    const patch = (body: unknown) =>
      acme.request('PATCH', path, {
        headers: { 'content-type': 'application/merge-patch+json' },
        body: JSON.stringify(body),
      })
    expect((await patch({ metadata: { labels: { x: 'y' } } })).status).to.equal(200)
    expect((await patch({ spec: { template: { spec: { hostPID: true } } } })).status).to.equal(403)
    expect((await patch({ spec: { template: { spec: { hostNetwork: false } } } })).status).to.equal(200)
  })

  it('restricted requires hardened pods', async () => {
    await setLevel('restricted')
    const [pod] = kinds
    if (pod === undefined) throw new Error('no row for Pods')
    const refused = await create(pod, 'plain', {})
    expect(refused.status).to.equal(403)
    expect(refused.text).to.contain('violates PodSecurity \\"restricted:latest\\": allowPrivilegeEscalation != false')
  })
})
