import { expect } from 'chai'
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import type { PodContext } from './pod-template.ts'
import { madeUp } from './up.ts'
import { workloadDown, type CopyNow } from './workload-down.ts'

const place = { cluster: 'acme', clusterId: clusterIdOf('uid of acme') }
const metadata = { name: 'web', namespace: 'shop', uid: 'u' }
const context: PodContext = {
  namespace: 'shop',
  audience: 'abcdefghij.klmnopqrst',
  apiAddress: { host: 'api.example', port: 7443 },
}
const first: CopyNow = { copy: undefined, isLeaving: false, isScaled: false }
const containers = [{ name: 'c', image: 'i:1' }]
const object = (apiVersion: string, kind: string, spec: Record<string, unknown>): KubeObject => ({
  apiVersion,
  kind,
  metadata,
  spec,
})
const specOf = (copy: KubeObject): Record<string, unknown> => copy['spec'] as Record<string, unknown>
const down = (workload: KubeObject, now: Partial<CopyNow> = {}): KubeObject =>
  workloadDown(workload, place, context, { ...first, ...now })

describe('workloads on their way into a member', () => {
  const uidLabels = { 'controller-uid': 'u', 'batch.kubernetes.io/controller-uid': 'u', 'job-name': 'web' }
  const job = (ofTemplate: Record<string, unknown> = {}): KubeObject =>
    object('batch/v1', 'Job', {
      ttlSecondsAfterFinished: 5,
      selector: { matchLabels: { 'batch.kubernetes.io/controller-uid': 'u' } },
      template: { metadata: { labels: { ...uidLabels, app: 'web' } }, spec: { containers, ...ofTemplate } },
    })

  it('a Job loses what the member generates, and the time after which only we delete it', () => {
    const { selector, ttlSecondsAfterFinished, template } = specOf(down(job())) as Record<string, KubeObject>
    expect([selector, ttlSecondsAfterFinished]).to.deep.equal([undefined, undefined])
    expect(template?.metadata.labels).to.have.all.keys('app', 'kcp.dev/managed', 'kcp.dev/serving')
  })
  /** The value with the keys of every object in the opposite order. */
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed)
    if (typeof value !== 'object' || value === null) return value
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, one]) => [key, reversed(one)]),
    )
  }

  it('the template of a Deployment is the same whatever the order of keys in what its tenant wrote', () => {
    const env = [{ name: 'NS', valueFrom: { fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } } }]
    const dnsConfig = { nameservers: ['10.0.0.1'], options: [{ name: 'ndots', value: '2' }], searches: ['a.example'] }
    const template = {
      metadata: { labels: { app: 'web' } },
      spec: { containers: [{ ...containers[0], env }], dnsConfig },
    }
    const deployment = object('apps/v1', 'Deployment', { selector: { matchLabels: { app: 'web' } }, template })
    const changesIn = (copy: KubeObject): string | undefined =>
      (specOf(copy)['template'] as KubeObject).metadata.annotations?.['kcp.dev/changes']
    const nameserver = { address: '10.0.0.53', domain: 'abcdefghij.kcp' }
    const of = (workload: KubeObject, copy?: KubeObject): KubeObject =>
      workloadDown(workload, place, { ...context, nameserver }, { ...first, copy })
    const other = reversed(deployment) as KubeObject
    expect(changesIn(of(deployment)))
      .to.be.a('string')
      .and.equal(changesIn(of(other)))
    // A copy of an earlier release has them in the order of that time.
    const text = JSON.stringify(reversed(JSON.parse(changesIn(of(deployment)) ?? '')))
    const copy = of(deployment)
    ;(specOf(copy)['template'] as KubeObject).metadata.annotations!['kcp.dev/changes'] = text
    expect(changesIn(of(deployment, copy))).to.equal(text)
  })
  it('a Job whose selector its tenant manages keeps it', () => {
    const managed = job()
    Object.assign(specOf(managed), { manualSelector: true })
    expect(specOf(down(managed))).to.have.nested.property('selector.matchLabels')
  })
  it('the template of a Job that exists stays, whatever our settings are now', () => {
    const copy = down(job())
    const other = { ...context, apiAddress: { host: 'elsewhere.example', port: 1 } }
    const again = workloadDown(job(), place, other, { ...first, copy })
    expect(specOf(again)['template']).to.deep.equal(specOf(copy)['template'])
    expect(JSON.stringify(workloadDown(job({ hostname: 'h' }), place, other, { ...first, copy }))).to.contain(
      'elsewhere',
    )
  })
  it('of a pod that exists only what can be changed is changed', () => {
    const pod = (image: string, labels: Record<string, string>): KubeObject => ({
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { ...metadata, labels },
      spec: { containers: [{ name: 'c', image }], nodeName: 'upstream-node', priority: 0 },
    })
    const copy = down(pod('i:1', { app: 'web' }))
    expect(specOf(copy)).to.not.have.any.keys('nodeName', 'priority')
    const running = { ...copy, spec: { ...specOf(copy), nodeName: 'node', enableServiceLinks: true } }
    const changed = down(pod('i:2', { app: 'web', colour: 'red' }), { copy: running })
    expect(specOf(changed)).to.deep.include({ nodeName: 'node', enableServiceLinks: true })
    expect(JSON.stringify(specOf(changed)['containers'])).to.contain('"image":"i:2"')
    expect(changed.metadata.labels).to.include({ colour: 'red' })
  })
  it('a CronJob that leaves makes no more Jobs, and says so in its source', () => {
    const cronJob = object('batch/v1', 'CronJob', {
      schedule: '* * * * *',
      jobTemplate: { spec: { template: { spec: { containers } } } },
    })
    const [stays, leaves] = [down(cronJob), down(cronJob, { isLeaving: true })]
    expect([specOf(stays)['suspend'], specOf(leaves)['suspend']]).to.deep.equal([undefined, true])
    expect(stays.metadata.annotations?.['kcp.dev/source']).to.not.equal(leaves.metadata.annotations?.['kcp.dev/source'])
    expect(stays).to.have.nested.property('spec.jobTemplate.metadata.labels').deep.equal({ 'kcp.dev/managed': 'true' })
  })
  const hostile = { 'pv.kubernetes.io/bind-completed': 'yes', 'iam.example/role': 'admin', 'kcp.dev/locator': '{}' }
  const kept = { team: 'blue', 'checksum/config': '1' }
  const withheld = JSON.stringify(Object.fromEntries(Object.entries(hostile).sort(([a], [b]) => (a < b ? -1 : 1))))
  const hostileMetadata = {
    ...{ name: 'data', namespace: 'kube-system', generateName: 'x-', uid: 'chosen', labels: { app: 'web' } },
    ...{ finalizers: ['a.example/b'], ownerReferences: [{ apiVersion: 'v1', kind: 'Pod', name: 'x', uid: 'x' }] },
    annotations: { ...hostile, ...kept },
  }
  const filtered = {
    name: 'data',
    labels: { app: 'web', 'kcp.dev/managed': 'true' },
    annotations: { ...kept, 'kcp.dev/withheld': withheld },
  }
  const statefulSet = (): KubeObject =>
    object('apps/v1', 'StatefulSet', {
      template: { spec: { containers } },
      volumeClaimTemplates: [
        {
          apiVersion: 'v1',
          kind: 'PersistentVolumeClaim',
          metadata: hostileMetadata,
          spec: { accessModes: ['ReadWriteOnce'], volumeName: 'disk-of-an-admin' },
          status: { phase: 'Bound' },
        },
      ],
    })
  it('the claims of a StatefulSet name no volume, and have no annotations that controllers of the member act on', () => {
    expect(specOf(down(statefulSet()))['volumeClaimTemplates']).to.deep.equal([
      {
        apiVersion: 'v1',
        kind: 'PersistentVolumeClaim',
        metadata: filtered,
        spec: { accessModes: ['ReadWriteOnce'] },
      },
    ])
  })
  it('the Jobs of a CronJob and their claims neither', () => {
    const claim = { metadata: hostileMetadata, spec: { volumeName: 'disk-of-an-admin' } }
    const volumes = [{ name: 'v', ephemeral: { volumeClaimTemplate: claim } }]
    const template = { metadata: hostileMetadata, spec: { containers, volumes } }
    const cronJob = object('batch/v1', 'CronJob', { jobTemplate: { metadata: hostileMetadata, spec: { template } } })
    const { jobTemplate } = specOf(down(cronJob)) as { jobTemplate: KubeObject }
    expect(jobTemplate.metadata).to.deep.equal(filtered)
    const pod = (specOf(jobTemplate) as { template: KubeObject }).template
    expect(pod.metadata).to.have.all.keys('name', 'labels', 'annotations')
    expect(pod.metadata.annotations).to.have.all.keys('team', 'checksum/config', 'kcp.dev/changes')
    expect((pod['spec'] as { volumes: { name: string }[] }).volumes.find(({ name }) => name === 'v')).to.deep.equal({
      name: 'v',
      ephemeral: {
        volumeClaimTemplate: { metadata: { name: 'data', labels: { app: 'web' }, annotations: kept }, spec: {} },
      },
    })
  })
  it('what a member makes of such a template has the annotations of its tenant upstream, and none of ours', () => {
    const made = { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { ...filtered, uid: 'u' }, spec: {} }
    const up = madeUp(made, { namespace: 'shop', member: 'east', owner: undefined })
    const { 'kcp.dev/locator': _, ...others } = hostile
    expect(up.metadata.annotations).to.deep.equal({ ...kept, ...others, 'kcp.dev/member': 'east' })
    expect(up.metadata.labels).to.deep.equal({ app: 'web' })
  })
  it('an embedded object in a field that is not known passes the filter of metadata', () => {
    const copy = down(
      object('apps/v1', 'Deployment', {
        template: { spec: { containers } },
        newTemplate: { metadata: hostileMetadata },
      }),
    )
    expect(specOf(copy)['newTemplate']).to.deep.equal({ metadata: filtered })
  })
  it('the claim templates of a copy of an earlier release stay, because they cannot be changed', () => {
    const [before, fresh] = [down(statefulSet()), down(statefulSet())]
    const [template] = specOf(before)['volumeClaimTemplates'] as [{ metadata: object; spec: object }]
    Object.assign(template, {
      metadata: { ...hostileMetadata, creationTimestamp: null },
      spec: { ...template.spec, volumeName: 'disk', volumeMode: 'Filesystem' },
    })
    const again = specOf(down(statefulSet(), { copy: before }))['volumeClaimTemplates'] as KubeObject[]
    expect(again[0]?.metadata).to.deep.equal(hostileMetadata)
    expect(again[0]?.['spec']).to.deep.equal({ accessModes: ['ReadWriteOnce'], volumeName: 'disk' })
    expect(specOf(down(statefulSet(), { copy: fresh }))).to.deep.equal(specOf(fresh))
    // A deleted StatefulSet of this name.
    const other = { ...before, metadata: { ...before.metadata, annotations: {} } }
    expect(specOf(down(statefulSet(), { copy: other }))).to.deep.equal(specOf(fresh))
  })
  for (const { title, now, paused } of [
    { title: 'that stays rolls out', now: {}, paused: false },
    { title: 'that another copy is about to replace is paused', now: { decided: { paused: true } }, paused: true },
    { title: 'that leaves is paused', now: { isLeaving: true }, paused: true },
  ] as const) {
    it(`a Deployment ${title}`, () => {
      const deployment = object('apps/v1', 'Deployment', { template: { spec: { containers } } })
      expect(specOf(down(deployment, now))['paused'] ?? false).to.equal(paused)
    })
    it(`a DaemonSet ${title}`, () => {
      const updateStrategy = { type: 'RollingUpdate' }
      const daemonSet = object('apps/v1', 'DaemonSet', { updateStrategy, template: { spec: { containers } } })
      const expected = paused ? { type: 'OnDelete' } : updateStrategy
      expect(specOf(down(daemonSet, now))['updateStrategy']).to.deep.equal(expected)
    })
  }
  it('the replicas that an autoscaler has set stay until the tenant changes the spec', () => {
    const deployment = (replicas: number, image = 'i:1'): KubeObject =>
      object('apps/v1', 'Deployment', { replicas, template: { spec: { containers: [{ name: 'c', image }] } } })
    const scaled = down(deployment(1))
    Object.assign(specOf(scaled), { replicas: 5 })
    const replicas = (workload: KubeObject, isScaled: boolean): unknown =>
      specOf(down(workload, { copy: scaled, isScaled }))['replicas']
    expect(replicas(deployment(1), true)).to.equal(5)
    expect(replicas(deployment(1), false)).to.equal(1)
    expect(replicas(deployment(2), true)).to.equal(2)
  })
  it('what a member makes of a template comes back as its tenant wrote it', () => {
    const template = { metadata: { labels: { app: 'web' } }, spec: { containers } }
    const copy = down(object('apps/v1', 'StatefulSet', { template }))
    const revision: KubeObject = {
      apiVersion: 'apps/v1',
      kind: 'ControllerRevision',
      metadata: { ...metadata, ...copy.metadata },
      data: { spec: { template: { ...(specOf(copy)['template'] as object), $patch: 'replace' } } },
      revision: 1,
    }
    const up = madeUp(revision, { namespace: 'shop', member: 'east', owner: undefined })
    expect(up['data']).to.deep.equal({ spec: { template: { ...template, $patch: 'replace' } } })
  })
  for (const { title, kind, name = 'db', more, kept } of [
    { title: 'of a StatefulSet', kind: 'StatefulSet', more: { serviceName: 'd' }, kept: true },
    {
      ...{ title: 'of a StatefulSet with a long name', kind: 'StatefulSet', name: 'a'.repeat(20) },
      ...{ more: { serviceName: 'd' }, kept: false },
    },
    { title: 'of a pod with a short name', kind: 'Pod', name: 'a', more: { subdomain: 'd' }, kept: true },
    { title: 'of a pod with a short hostname', kind: 'Pod', more: { hostname: 'h', subdomain: 'd' }, kept: true },
    { title: 'of a pod without a domain', kind: 'Pod', name: 'a'.repeat(60), more: {}, kept: true },
    { title: 'of a pod with a long name', kind: 'Pod', name: 'a'.repeat(30), more: { subdomain: 'd' }, kept: false },
  ])
    it(`the domain name as hostname ${title} is ${kept ? 'kept' : 'left out, because with the id it may be too long'}`, () => {
      const { serviceName, ...ofPod } = more as Record<string, string>
      const podSpec = { containers, setHostnameAsFQDN: true, ...ofPod }
      const spec = kind === 'Pod' ? podSpec : { serviceName, template: { spec: podSpec } }
      const workload = { ...object(kind === 'Pod' ? 'v1' : 'apps/v1', kind, spec), metadata: { ...metadata, name } }
      const down = workloadDown(workload, place, context, first)
      expect(JSON.stringify(down['spec']).includes('setHostnameAsFQDN')).to.equal(kept)
    })
})

describe('workloads that are asleep', () => {
  const labels = { app: 'web' }
  const template = { metadata: { labels }, spec: { containers } }
  const spec = { replicas: 3, selector: { matchLabels: labels }, template }
  const asleep = { decided: { asleep: true as const } }

  for (const [apiVersion, kind] of [
    ['apps/v1', 'Deployment'],
    ['apps/v1', 'ReplicaSet'],
    ['apps/v1', 'StatefulSet'],
    ['v1', 'ReplicationController'],
  ] as const)
    it(`a ${kind} has no replicas, and the same template as before`, () => {
      const [awake, sleeping] = [down(object(apiVersion, kind, spec)), down(object(apiVersion, kind, spec), asleep)]
      expect([specOf(awake)['replicas'], specOf(sleeping)['replicas']]).to.deep.equal([3, 0])
      expect(specOf(sleeping)['template']).to.deep.equal(specOf(awake)['template'])
      expect(sleeping.metadata.annotations?.['kcp.dev/source']).to.equal(
        `${awake.metadata.annotations?.['kcp.dev/source'] ?? ''} asleep`,
      )
    })

  it('an autoscaler in the member, a division and a move of ordinals do not give it replicas', () => {
    const copy = down(object('apps/v1', 'Deployment', spec), asleep)
    specOf(copy)['replicas'] = 7
    const scaled = down(object('apps/v1', 'Deployment', spec), { copy, isScaled: true, ...asleep })
    expect(specOf(scaled)['replicas']).to.equal(0)
    const decided = { asleep: true as const, replicas: 2, start: 1 }
    expect(specOf(down(object('apps/v1', 'StatefulSet', spec), { decided }))['replicas']).to.equal(0)
  })

  it('a StatefulSet keeps its claims, whatever becomes of them when it is scaled down', () => {
    const persistentVolumeClaimRetentionPolicy = { whenScaled: 'Delete', whenDeleted: 'Delete' }
    const copy = down(object('apps/v1', 'StatefulSet', { ...spec, persistentVolumeClaimRetentionPolicy }), asleep)
    expect(specOf(copy)['persistentVolumeClaimRetentionPolicy']).to.deep.equal({
      whenDeleted: 'Retain',
      whenScaled: 'Retain',
    })
  })

  it('a StatefulSet keeps its claims while its pods go to another member one by one', () => {
    const persistentVolumeClaimRetentionPolicy = { whenScaled: 'Delete', whenDeleted: 'Delete' }
    const set = object('apps/v1', 'StatefulSet', { ...spec, persistentVolumeClaimRetentionPolicy })
    const policyOf = (options: Parameters<typeof down>[1]): unknown =>
      specOf(down(set, options))['persistentVolumeClaimRetentionPolicy']
    expect(policyOf({ decided: { start: 0, replicas: 2 } })).to.deep.equal({
      whenDeleted: 'Retain',
      whenScaled: 'Retain',
    })
    expect(policyOf({ decided: {} })).to.deep.equal(persistentVolumeClaimRetentionPolicy)
  })

  it('a DaemonSet selects no node, and a CronJob and a Job that has not begun are suspended', () => {
    const daemons = specOf(down(object('apps/v1', 'DaemonSet', { selector: spec.selector, template }), asleep))
    expect((daemons['template'] as { spec: object }).spec).to.deep.include({
      nodeSelector: { 'kcp.dev/asleep': 'true' },
    })
    const job = { template }
    const cron = object('batch/v1', 'CronJob', { schedule: '* * * * *', jobTemplate: { spec: job } })
    expect(specOf(down(cron, asleep))).to.include({ suspend: true })
    expect(specOf(down(object('batch/v1', 'Job', job), asleep))).to.include({ suspend: true })
    const copy = { ...down(object('batch/v1', 'Job', job)), status: { startTime: '2026-01-01T00:00:00Z' } }
    expect(specOf(down(object('batch/v1', 'Job', job), { copy, ...asleep }))).to.not.have.property('suspend')
  })
})
