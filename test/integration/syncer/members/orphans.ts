// Workloads that are deleted without their pods (`--cascade=orphan`) and created again. The right outcome is that of
// the same manifest applied in a member: each pod runs on, without an owner until the new workload adopts the pod.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { locatorAnnotation } from '#crds/index.ts'
import { servingOn, space, until, type Resource, type Space, type SyncedMembers } from '../syncers-of-members.ts'

interface Kind {
  readonly resource: Resource
  readonly apiVersion: string
  readonly kind: string
  readonly spec: (template: object, labels: Record<string, string>) => object
  /** A new one with the same selector adopts the pods: a Job has a selector of its own. */
  readonly adopts: boolean
}

const sized = (template: object, labels: object): object => ({
  replicas: 2,
  selector: { matchLabels: labels },
  template,
})
const claims = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } }

const kinds: readonly Kind[] = [
  {
    resource: 'statefulsets',
    apiVersion: 'apps/v1',
    kind: 'StatefulSet',
    spec: (template, labels) => ({
      ...sized(template, labels),
      serviceName: 'db',
      podManagementPolicy: 'Parallel',
      volumeClaimTemplates: [{ metadata: { name: 'data' }, spec: claims }],
    }),
    adopts: true,
  },
  { resource: 'replicasets', apiVersion: 'apps/v1', kind: 'ReplicaSet', spec: sized, adopts: true },
  { resource: 'deployments', apiVersion: 'apps/v1', kind: 'Deployment', spec: sized, adopts: true },
  {
    resource: 'jobs',
    apiVersion: 'batch/v1',
    kind: 'Job',
    spec: (template) => {
      const { spec, ...rest } = template as { spec: object }
      return {
        ...{ backoffLimit: 9, parallelism: 2, completions: 2 },
        template: { ...rest, spec: { ...spec, restartPolicy: 'Never' } },
      }
    },
    adopts: false,
  },
]

const settings: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { a: '1' } }
const service: KubeObject = {
  ...{ apiVersion: 'v1', kind: 'Service', metadata: { name: 'all' } },
  spec: { ports: [{ port: 80 }], selector: { of: 'orphans' } },
}

function workload({ apiVersion, kind, spec }: Kind, change: (spec: object) => object = (one) => one): KubeObject {
  const name = kind.toLowerCase()
  const labels = { app: name }
  const containers = [{ name: 'main', image: 'example/any:1', envFrom: [{ configMapRef: { name: 'settings' } }] }]
  const template = {
    metadata: { labels: { ...labels, of: 'orphans' } },
    spec: { containers, terminationGracePeriodSeconds: 1 },
  }
  return { apiVersion, kind, metadata: { name }, spec: change(spec(template, labels)) }
}

const withPlace = (object: KubeObject): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, annotations: servingOn('east') },
})

/** As people do to grow the volumes of a StatefulSet. */
function withLargerClaims(spec: object): object {
  const { volumeClaimTemplates: templates } = spec as { volumeClaimTemplates?: readonly object[] }
  if (templates === undefined) return spec
  const larger = { ...claims, resources: { requests: { storage: '2Mi' } } }
  return { ...spec, volumeClaimTemplates: templates.map((one) => ({ ...one, spec: larger })) }
}

/** `started`: a member east, perhaps with others. */
export function defineOrphans(started: () => SyncedMembers): void {
  describe('workloads that are deleted without their pods', function () {
    this.timeout(240_000)
    let system: SyncedMembers
    before(() => {
      system = started()
    })

    const podsOf = async (at: Space, name: string): Promise<KubeObject[]> =>
      (await at.list('pods')).filter(
        ({ metadata, ...pod }) =>
          metadata.labels?.['app'] === name &&
          metadata.deletionTimestamp === undefined &&
          (pod as { status?: { phase?: string } }).status?.phase === 'Running',
      )
    const uidsOf = (pods: readonly KubeObject[]): string[] => pods.map(({ metadata }) => metadata.uid ?? '').sort()
    /** Upstream, an ordinary cluster gives other uids: these are the uids that the syncer keeps beside them. */
    const ownerOf = ({ metadata }: KubeObject): string =>
      metadata.ownerReferences?.map(({ kind, controller }) => `${kind} ${controller}`).join() ?? 'none'

    it('keep their pods, and adopt them when they are created again, as in a cluster', async () => {
      const upstream = space(system.up, 'orphans')
      const east = system.members['east']!.client
      const [direct, below] = [space(east, 'orphans'), space(east, system.below('orphans'))]
      for (const at of [upstream, direct]) {
        await at.begin()
        await at.create('configmaps', settings)
        await at.create('services', service)
        for (const kind of kinds)
          await at.create(kind.resource, at === upstream ? withPlace(workload(kind)) : workload(kind))
      }
      for (const at of [upstream, direct, below])
        for (const { kind } of kinds)
          await until(`the pods of ${kind}`, async () => (await podsOf(at, kind.toLowerCase())).length === 2)
      const names = kinds.map(({ kind }) => kind.toLowerCase())
      const podUids = async (at: Space): Promise<string[][]> =>
        Promise.all(names.map(async (name) => uidsOf(await podsOf(at, name))))
      const before = { upstream: await podUids(upstream), direct: await podUids(direct), below: await podUids(below) }

      for (const at of [upstream, direct])
        for (const { resource, kind } of kinds) await at.delete(resource, kind.toLowerCase(), 'Orphan')
      for (const at of [upstream, direct, below])
        for (const { resource, kind } of kinds)
          await until(`${kind} to go`, async () => (await at.get(resource, kind.toLowerCase())) === undefined)
      const ownersIn = async (at: Space): Promise<string[]> => {
        const told: string[] = []
        for (const name of names) for (const pod of await podsOf(at, name)) told.push(`${name}: ${ownerOf(pod)}`)
        return told
      }
      for (const at of [upstream, below])
        await until('the pods to lose their owners', async () => {
          const [is, right] = [await ownersIn(at), await ownersIn(direct)]
          return (
            right.every((line) => line.endsWith(': none') || line.includes('ReplicaSet')) && is.join() === right.join()
          )
        })
      // A later change has arrived: whatever the deletions caused has happened.
      await upstream.patch('configmaps', 'settings', { data: { a: '2' } })
      await until('the ConfigMap of the orphans', async () => {
        const { data } = ((await below.get('configmaps', 'settings')) ?? {}) as { data?: { a?: string } }
        return data?.a === '2'
      })
      expect(await below.get('services', 'all'), 'the Service of the orphans').to.have.property('spec')
      for (const [title, at] of Object.entries({ upstream, direct, below }))
        expect(await podUids(at), `pods ${title} after the deletion`).to.deep.equal(
          before[title as keyof typeof before],
        )

      const again = kinds.filter(({ adopts }) => adopts)
      for (const at of [upstream, direct])
        for (const kind of again) {
          const object = workload(kind, withLargerClaims)
          await at.create(kind.resource, at === upstream ? withPlace(object) : object)
        }
      for (const at of [upstream, direct, below])
        for (const { kind, resource } of again)
          await until(`the pods to be adopted by ${kind}`, async () => {
            const name = kind.toLowerCase()
            const { status } = ((await at.get(resource, name)) ?? {}) as { status?: { readyReplicas?: number } }
            const pods = await podsOf(at, name)
            const owner = kind === 'Deployment' ? 'ReplicaSet' : kind
            return (
              status?.readyReplicas === 2 && pods.length > 0 && pods.every((pod) => ownerOf(pod) === `${owner} true`)
            )
          })
      for (const at of [upstream, direct, below]) {
        const sets = (await at.list('replicasets')).filter(({ metadata }) => metadata.name?.startsWith('deployment-'))
        expect(sets.map(ownerOf)).to.deep.equal(['Deployment true'])
      }
      for (const [title, at] of Object.entries({ upstream, direct, below }))
        expect(await podUids(at), `pods ${title} after the adoption`).to.deep.equal(
          before[title as keyof typeof before],
        )
      const set = await below.get('statefulsets', 'statefulset')
      expect(JSON.parse(set?.metadata.annotations?.[locatorAnnotation] ?? '{}')).to.have.property(
        'uid',
        (await upstream.get('statefulsets', 'statefulset'))?.metadata.uid,
      )
    })

    it('leave nothing in members once their pods are deleted, as in a cluster', async () => {
      const upstream = space(system.up, 'left')
      const east = system.members['east']!.client
      const below = space(east, system.below('left'))
      const [, replicaSet, deployment] = kinds
      await upstream.begin()
      await upstream.create('configmaps', settings)
      for (const kind of [replicaSet!, deployment!]) {
        const name = kind.kind.toLowerCase()
        await upstream.create(kind.resource, withPlace(workload(kind)))
        await until(`the pods of ${name}`, async () => (await podsOf(upstream, name)).length === 2)
        await upstream.delete(kind.resource, name, 'Orphan')
        await until(`${name} to go`, async () => (await upstream.get(kind.resource, name)) === undefined)
      }
      await until('the pods upstream to lose their owner', async () =>
        (await podsOf(upstream, 'replicaset')).every((pod) => ownerOf(pod) === 'none'),
      )
      expect(await podsOf(below, 'replicaset'), 'pods of the ReplicaSet').to.have.length(2)
      expect(await podsOf(below, 'deployment'), 'pods of the Deployment').to.have.length(2)
      for (const { metadata } of await podsOf(upstream, 'replicaset'))
        await upstream.delete('pods', metadata.name ?? '', 'Background')
      for (const { metadata } of (await upstream.list('replicasets')).filter(({ metadata: { name } }) =>
        name?.startsWith('deployment-'),
      ))
        await upstream.delete('replicasets', metadata.name ?? '', 'Background')
      await until('all pods upstream to go', async () => (await upstream.list('pods')).length === 0)
      await until('the namespace in the member to go', async () => {
        const { signal } = new AbortController()
        const gvr = { group: '', version: 'v1', resource: 'namespaces' }
        return (await east.tryGet(gvr, { name: system.below('left') }, { signal })) === undefined
      })
    })
  })
}
