// Pod security of a logical cluster: what the LogicalCluster says is enforced on pods and on templates, whoever writes
// them inside and whatever labels a tenant puts on namespaces.
import { expect } from 'chai'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
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

  for (const row of kinds)
    it(`tells why a ${row.kind} with hostPath, privileged, nodeName or a system priority is refused`, async () => {
      const beyond: readonly (readonly [JsonObject, string])[] = [
        [{ volumes: [{ name: 'v', hostPath: { path: '/' } }] }, 'hostPath volumes'],
        [{ containers: [{ name: 'web', image: 'i', securityContext: { privileged: true } }] }, 'privileged (container'],
        [{ nodeName: 'n' }, 'spec.nodeName "n" is not allowed: the scheduler of a member cluster chooses the node'],
        ...['system-node-critical', 'system-cluster-critical'].map(
          (priorityClassName) =>
            [{ priorityClassName }, `spec.priorityClassName "${priorityClassName}" is not allowed`] as const,
        ),
      ]
      for (const [spec, reason] of beyond) {
        const { status, text } = await create(row, 'beyond', spec)
        expect([status, (JSON.parse(text) as { message: string }).message]).to.satisfy(
          ([code, message]: [number, string]) => code === 403 && message.includes(reason),
          `${status} ${text}`,
        )
      }
    })

  it('the level privileged allows nodeName and system priorities, which stay when it is lowered', async () => {
    await setLevel('privileged')
    const [pod, , , deployment] = kinds
    if (pod === undefined || deployment === undefined) throw new Error('no row for pods and Deployments')
    expect((await create(pod, 'bound', { nodeName: 'n' })).status).to.equal(201)
    expect((await create(deployment, 'critical', { priorityClassName: 'system-node-critical' })).status).to.equal(201)
    await setLevel('baseline')
    const headers = { 'content-type': 'application/merge-patch+json' }
    const change = async (path: string, body: object) =>
      (await acme.request('PATCH', `/clusters/acme/${path}`, { headers, body: JSON.stringify(body) })).status
    const label = { metadata: { labels: { x: 'y' } } }
    expect(await change('api/v1/namespaces/default/pods/bound', label)).to.equal(200)
    const stored = 'apis/apps/v1/namespaces/default/deployments/critical'
    expect(await change(stored, label)).to.equal(200)
    const priorityClassName = 'system-cluster-critical'
    expect(await change(stored, { spec: { template: { spec: { priorityClassName } } } })).to.equal(403)
    expect(await change(stored, { spec: { template: { spec: { priorityClassName: null } } } })).to.equal(200)
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
