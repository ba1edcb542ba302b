// The end of workloads: deleted with their namespace, and by each propagation policy, with and without finalizers of
// others. The right outcome is that of the same manifest applied in a member.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { createInformer, type Informer, type KubeClient } from '#client/index.ts'
import { gvrs } from '#syncer/context/resources.ts'
import { silentLogger } from '#telemetry/index.ts'
import { servingOn, space, until, type Resource, type Space, type SyncedMembers } from '../syncers-of-members.ts'

const foreign = 'example.com/backup'
type Policy = 'Background' | 'Foreground'

interface Kind {
  readonly resource: Resource
  readonly apiVersion: string
  readonly kind: string
  /** Pods that it makes at a time. */
  readonly pods: number
  readonly spec: (template: object, labels: Record<string, string>) => object
}

const sized = (template: object, labels: object): object => ({
  replicas: 2,
  selector: { matchLabels: labels },
  template,
})
const run = (template: object): object => {
  const { spec, ...rest } = template as { spec: object }
  return { backoffLimit: 9, template: { ...rest, spec: { ...spec, restartPolicy: 'Never' } } }
}

const kinds: readonly Kind[] = [
  { resource: 'deployments', apiVersion: 'apps/v1', kind: 'Deployment', pods: 2, spec: sized },
  { resource: 'statefulsets', apiVersion: 'apps/v1', kind: 'StatefulSet', pods: 2, spec: sized },
  { resource: 'replicasets', apiVersion: 'apps/v1', kind: 'ReplicaSet', pods: 2, spec: sized },
  {
    resource: 'replicationcontrollers',
    apiVersion: 'v1',
    kind: 'ReplicationController',
    pods: 2,
    spec: (template, labels) => ({ replicas: 2, selector: labels, template }),
  },
  {
    resource: 'daemonsets',
    apiVersion: 'apps/v1',
    kind: 'DaemonSet',
    pods: 1,
    spec: (template, labels) => ({ selector: { matchLabels: labels }, template }),
  },
  { resource: 'jobs', apiVersion: 'batch/v1', kind: 'Job', pods: 1, spec: run },
]

function workload({ apiVersion, kind, spec }: Kind, name: string, finalizers: readonly string[] = []): KubeObject {
  const labels = { app: name }
  const containers = [{ name: 'main', image: 'example/any:1', envFrom: [{ configMapRef: { name: 'settings' } }] }]
  const template = { metadata: { labels }, spec: { containers, terminationGracePeriodSeconds: 1 } }
  return { apiVersion, kind, metadata: { name, finalizers: [...finalizers] }, spec: spec(template, labels) }
}

const placedIn = (object: KubeObject, ...members: readonly string[]): KubeObject => ({
  ...object,
  metadata: { ...object.metadata, annotations: servingOn(...members) },
})

const settings: KubeObject = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'settings' }, data: { a: '1' } }

/** `started`: members east and west. */
export function defineEndings(started: () => SyncedMembers): void {
  describe('the end of workloads in members', function () {
    this.timeout(240_000)
    const life = new AbortController()
    let system: SyncedMembers
    /** By member: every pod that was ever seen, by uid. */
    const seen: Record<string, Map<string, string>> = {}
    const informers: Informer<KubeObject>[] = []

    const followPods = (name: string, client: KubeClient): void => {
      const pods = (seen[name] = new Map<string, string>())
      const informer = createInformer<KubeObject>({ client, gvr: gvrs.pods, log: silentLogger, signal: life.signal })
      informer.onChange(({ after }) => {
        if (after !== undefined)
          pods.set(after.metadata.uid ?? '', `${after.metadata.namespace}/${after.metadata.name}`)
      })
      informers.push(informer)
    }
    const madeIn = (member: string, namespace: string): string[] =>
      [...seen[member]!.values()].filter((pod) => pod.startsWith(`${namespace}/`)).sort()
    const running = async (at: Space, name: string): Promise<KubeObject[]> =>
      (await at.list('pods')).filter(
        ({ metadata, ...pod }) =>
          metadata.labels?.['app'] === name &&
          metadata.deletionTimestamp === undefined &&
          (pod as { status?: { phase?: string } }).status?.phase === 'Running',
      )

    before(async function () {
      this.timeout(300_000)
      system = started()
      for (const [name, { client }] of Object.entries(system.members)) followPods(name, client)
      await Promise.all(informers.map((informer) => informer.synced(life.signal)))
    })
    after(() => life.abort())

    it('deletes a namespace at once in each member that answers, and makes no new pods', async () => {
      const upstream = space(system.up, 'ends')
      const below = system.below('ends')
      await upstream.begin()
      await upstream.create('configmaps', settings)
      for (const kind of kinds) {
        const name = kind.kind.toLowerCase()
        await upstream.create(kind.resource, placedIn(workload(kind, name), 'east', 'west'))
      }
      const expected = kinds.reduce((sum, { pods }) => sum + pods, 0)
      for (const member of ['east', 'west'])
        await until(`the pods in ${member}`, async () => {
          const pods = await space(system.members[member]!.client, below).list('pods')
          const isRunning = (pod: KubeObject): boolean => (pod['status'] as { phase?: string }).phase === 'Running'
          return pods.length === expected && pods.every(isRunning)
        })
      await until('all pods upstream', async () => (await upstream.list('pods')).length >= expected)
      const before = Object.fromEntries(['east', 'west'].map((member) => [member, madeIn(member, below)]))
      const comesBack = await system.cutOff('west')
      await upstream.end()
      const east = system.members['east']!.client
      const isGone = async (client: KubeClient, name: string): Promise<boolean> =>
        (await client.tryGet(gvrs.namespaces, { name }, { signal: life.signal })) === undefined
      await until('the namespace in east to go', () => isGone(east, below))
      expect(madeIn('east', below), 'pods that were ever in east').to.deep.equal(before['east'])
      expect(await isGone(system.up, 'ends'), 'gone upstream while west does not answer').to.equal(false)
      comesBack()
      await until('the namespace upstream to go', () => isGone(system.up, 'ends'))
      await until('the namespace in west to go', () => isGone(system.members['west']!.client, below))
      expect(madeIn('west', below), 'pods that were ever in west').to.deep.equal(before['west'])
    })

    for (const policy of ['Background', 'Foreground'] satisfies Policy[])
      it(`deletes workloads with and without a foreign finalizer as a cluster does, propagation ${policy}`, async () => {
        const id = `by-${policy.toLowerCase()}`
        const [upstream, direct] = [space(system.up, id), space(system.members['east']!.client, id)]
        const below = space(system.members['east']!.client, system.below(id))
        const cases = kinds.flatMap((kind) =>
          [[], [foreign]].map((finalizers) => ({
            kind,
            finalizers,
            name: `${kind.kind.toLowerCase()}-${finalizers.length}`,
          })),
        )
        for (const at of [upstream, direct]) {
          await at.begin()
          await at.create('configmaps', settings)
          for (const { kind, name, finalizers } of cases) {
            const object = workload(kind, name, finalizers)
            await at.create(kind.resource, at === upstream ? placedIn(object, 'east') : object)
          }
        }
        for (const at of [upstream, direct, below])
          for (const { kind, name } of cases)
            await until(`the pods of ${name}`, async () => (await running(at, name)).length === kind.pods)
        for (const at of [upstream, direct])
          for (const { kind, name } of cases) await at.delete(kind.resource, name, policy)
        const outcomes = async (at: Space, pods: Space): Promise<string[]> => {
          const told: string[] = []
          for (const { kind, name, finalizers } of cases) {
            const staysWhole = finalizers.length > 0 && policy === 'Background'
            // First waits for the workloads and pods that must end, then looks at those that must keep running.
            if (!staysWhole)
              await until(`the pods of ${name} to go`, async () =>
                (await pods.list('pods')).every(({ metadata }) => metadata.labels?.['app'] !== name),
              )
            if (finalizers.length === 0)
              await until(`${name} to go`, async () => (await at.get(kind.resource, name)) === undefined)
          }
          for (const { kind, name } of cases) {
            const object = await at.get(kind.resource, name)
            const state = object === undefined ? 'gone' : object.metadata.deletionTimestamp ? 'deleting' : 'there'
            told.push(`${name} ${state}, ${(await running(pods, name)).length} pods`)
          }
          return told
        }
        const right = await outcomes(direct, direct)
        expect(await outcomes(upstream, below)).to.deep.equal(right)
        expect(right.filter((line) => / deleting, [12] pods/.test(line))).to.have.length(
          policy === 'Background' ? kinds.length : 0,
        )
        if (policy === 'Background') {
          // A controller whose object is being deleted makes no pods; a ReplicaSet below it does.
          const lost = await Promise.all(
            [direct, below].map(async (at) => {
              for (const { kind, name, finalizers } of cases) {
                const [pod] = finalizers.length > 0 && kind.kind !== 'Job' ? await running(at, name) : []
                if (pod !== undefined) await at.delete('pods', pod.metadata.name ?? '', 'Background')
              }
              await until('the pod of the Deployment to be replaced', async () => {
                const pods = await running(at, 'deployment-1')
                return pods.length === 2 && (await running(at, 'statefulset-1')).length < 2
              })
              return Promise.all(
                cases.map(async ({ name, finalizers }) =>
                  finalizers.length > 0 ? `${name} ${(await running(at, name)).length}` : '',
                ),
              )
            }),
          )
          expect(lost[1]).to.deep.equal(lost[0])
          expect(await below.get('configmaps', 'settings'), 'what the pods refer to').to.have.property('data')
        }
        for (const at of [upstream, direct])
          for (const { kind, name, finalizers } of cases)
            if (finalizers.length > 0) {
              const { metadata } = (await at.get(kind.resource, name))!
              const kept = metadata.finalizers?.filter((one) => one !== foreign)
              await at.patch(kind.resource, name, { metadata: { finalizers: kept } })
            }
        for (const [at, pods] of [
          [direct, direct],
          [upstream, below],
        ] as const)
          for (const { kind, name } of cases) {
            await until(`${name} to go`, async () => (await at.get(kind.resource, name)) === undefined)
            await until(`the pods of ${name} to go`, async () =>
              (await pods.list('pods')).every(({ metadata }) => metadata.labels?.['app'] !== name),
            )
          }
      })

    it('keeps the copies of objects that pods use until the objects are gone upstream', async () => {
      const upstream = space(system.up, 'held')
      const below = space(system.members['east']!.client, system.below('held'))
      await upstream.begin()
      const [deployment] = kinds
      await upstream.create('configmaps', { ...settings, metadata: { name: 'settings', finalizers: [foreign] } })
      const service = { apiVersion: 'v1', kind: 'Service', spec: { ports: [{ port: 80 }], selector: { app: 'web' } } }
      await upstream.create('services', { ...service, metadata: { name: 'web', finalizers: [foreign] } })
      await upstream.create('deployments', placedIn(workload(deployment!, 'web'), 'east'))
      await until(
        'both in the member',
        async () => (await below.get('configmaps', 'settings')) && below.get('services', 'web'),
      )
      for (const [resource, name] of [
        ['configmaps', 'settings'],
        ['services', 'web'],
      ] as const)
        await upstream.delete(resource, name, 'Background')
      // When this later change has arrived, everything that the deletions caused has happened.
      await upstream.patch('deployments', 'web', { spec: { replicas: 3 } })
      await until('three pods', async () => (await running(below, 'web')).length === 3)
      expect(await below.get('configmaps', 'settings')).to.have.property('data')
      expect(await below.get('services', 'web')).to.have.property('spec')
      for (const [resource, name] of [
        ['configmaps', 'settings'],
        ['services', 'web'],
      ] as const) {
        await upstream.patch(resource, name, { metadata: { finalizers: null } })
        await until(`${name} to go in the member`, async () => (await below.get(resource, name)) === undefined)
      }
    })
  })
}
