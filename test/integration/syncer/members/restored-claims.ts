// Claims that exist before the StatefulSet whose pods use them: each pod finds the same claim as where both are applied
// directly.
import { expect } from 'chai'
import fc from 'fast-check'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { locatorAnnotation, memberStatusAnnotation, volumeAnnotation } from '#crds/index.ts'
import { servingOn, space, until, type Space, type SyncedMembers } from '../syncers-of-members.ts'

const labels = { app: 'db' }
const claimSpec = (storage: string): object => ({
  accessModes: ['ReadWriteOnce'],
  resources: { requests: { storage } },
})

function claim(name: string, spec = claimSpec('1Gi')): KubeObject {
  return { apiVersion: 'v1', kind: 'PersistentVolumeClaim', metadata: { name }, spec }
}

interface Restore {
  readonly set: string
  readonly templates: readonly string[]
  readonly start: number
  readonly replicas: number
  /** Names of claims that exist before. */
  readonly restored: readonly string[]
}

function statefulSet({ set, templates, start, replicas }: Restore): KubeObject {
  const template = { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'example/any:1' }] } }
  const spec = {
    serviceName: 'db',
    replicas,
    ...(start > 0 && { ordinals: { start } }),
    podManagementPolicy: 'Parallel',
    selector: { matchLabels: labels },
    template,
    volumeClaimTemplates: templates.map((name) => ({ metadata: { name }, spec: claimSpec('1Mi') })),
  }
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: set }, spec }
}

/** Restores with names that are, and that only look like, those of claims of the StatefulSet. */
const restores: fc.Arbitrary<Restore> = fc
  .record({
    set: fc.constantFrom('db', 'db-0', 'data'),
    templates: fc.uniqueArray(fc.constantFrom('data', 'data-db', 'wal'), { minLength: 1, maxLength: 2 }),
    start: fc.constantFrom(0, 3),
    replicas: fc.integer({ min: 1, max: 2 }),
    ordinals: fc.uniqueArray(fc.integer({ min: 0, max: 5 }), { maxLength: 4 }),
    others: fc.subarray(['data-db-00', 'data-db', 'data-db-x', 'other-db-0', 'wal-0']),
  })
  .map(({ ordinals, others, ...given }) => ({
    ...given,
    restored: [
      ...new Set([
        ...given.templates.flatMap((name) => ordinals.map((one) => `${name}-${given.set}-${one}`)),
        ...others,
      ]),
    ],
  }))

/** `started`: a member east, perhaps with others. */
export function defineRestoredClaims(started: () => SyncedMembers): void {
  describe('claims that a tenant made before a StatefulSet', function () {
    this.timeout(120_000)
    let system: SyncedMembers
    before(() => {
      system = started()
    })

    /** Whether each claim of the pods was there before, and how much the others ask for. */
    async function claimsOfPods(
      { set, start, replicas, templates }: Restore,
      at: Space,
      isRestored: (one: KubeObject) => boolean,
    ) {
      const names = Array.from({ length: replicas }, (_, i) => i + start)
      await until('the pods', async () =>
        (await Promise.all(names.map((i) => at.get('pods', `${set}-${i}`)))).every(Boolean),
      )
      const claims = names.flatMap((i) => templates.map((template) => `${template}-${set}-${i}`)).sort()
      return Promise.all(
        claims.map(async (name) => {
          const found = await until(`claim ${name}`, () => at.get('persistentvolumeclaims', name))
          const { resources } = found['spec'] as { resources: { requests: { storage: string } } }
          return [name, isRestored(found) ? 'restored' : 'new', resources.requests.storage]
        }),
      )
    }

    it('are found by its pods, as in a cluster', async () => {
      const east = system.members['east']!.client
      for (const [round, restore] of fc.sample(restores, { seed: 23, numRuns: 8 }).entries()) {
        const upstream = space(system.up, `restore-${round}`)
        const direct = space(east, `direct-${round}`)
        const below = space(east, system.below(`restore-${round}`))
        const uids = new Set<string | undefined>()
        for (const at of [upstream, direct]) {
          await at.begin()
          for (const name of restore.restored)
            uids.add((await at.create('persistentvolumeclaims', claim(name))).metadata.uid)
          const set = statefulSet(restore)
          await at.create('statefulsets', {
            ...set,
            metadata: { ...set.metadata, ...(at === upstream && { annotations: servingOn('east') }) },
          })
        }
        const ofTenant = (one: KubeObject): boolean => {
          const locator = one.metadata.annotations?.[locatorAnnotation]
          return locator !== undefined && uids.has((JSON.parse(locator) as { uid: string }).uid)
        }
        const expected = await claimsOfPods(restore, direct, ({ metadata }) => uids.has(metadata.uid))
        expect(await claimsOfPods(restore, below, ofTenant), JSON.stringify(restore)).to.deep.equal(expected)
        // As in a cluster, other claims are nobody's: they get no volume in the member.
        const others = restore.restored.filter((name) => !/-(0|[1-9]\d*)$/.test(name))
        for (const name of others) expect(await below.get('persistentvolumeclaims', name)).to.equal(undefined)
      }
    })

    it('are found by pods that a scale-up makes', async () => {
      const upstream = space(system.up, 'grown')
      const below = space(system.members['east']!.client, system.below('grown'))
      await upstream.begin()
      const set = statefulSet({ set: 'db', templates: ['data'], start: 0, replicas: 1, restored: [] })
      await upstream.create('statefulsets', { ...set, metadata: { ...set.metadata, annotations: servingOn('east') } })
      await until('the first pod', () => below.get('pods', 'db-0'))
      const { metadata } = await upstream.create('persistentvolumeclaims', claim('data-db-1'))
      await upstream.patch('statefulsets', 'db', { spec: { replicas: 2 } })
      await until('the second pod', () => below.get('pods', 'db-1'))
      const found = await below.get('persistentvolumeclaims', 'data-db-1')
      expect(found?.metadata.annotations?.[locatorAnnotation]).to.contain(metadata.uid)
    })

    for (const { title, policy, act, kept } of [
      { title: 'stay when it goes', policy: undefined, act: 'delete', kept: true },
      { title: 'go with it where it says so', policy: { whenDeleted: 'Delete' }, act: 'delete', kept: false },
      { title: 'go when it shrinks where it says so', policy: { whenScaled: 'Delete' }, act: 'shrink', kept: false },
    ] as const)
      it(title, async () => {
        const name = `ends-${act}-${kept ? 'kept' : 'gone'}`
        const [upstream, direct] = [space(system.up, name), space(system.members['east']!.client, name)]
        const set = statefulSet({ set: 'db', templates: ['data'], start: 0, replicas: 1, restored: [] })
        const spec = { ...(set['spec'] as object), ...(policy && { persistentVolumeClaimRetentionPolicy: policy }) }
        for (const at of [upstream, direct]) {
          await at.begin()
          await at.create('persistentvolumeclaims', claim('data-db-0'))
          const annotations = at === upstream ? servingOn('east') : {}
          await at.create('statefulsets', { ...set, spec, metadata: { ...set.metadata, annotations } })
        }
        const isThere = async (at: Space): Promise<boolean> =>
          (await at.get('persistentvolumeclaims', 'data-db-0')) !== undefined
        for (const at of [upstream, direct]) {
          await until('the pod', () => at.get('pods', 'db-0'))
          const isOwnedBy = (owner: string) => async (): Promise<boolean | undefined> =>
            (await at.get('persistentvolumeclaims', 'data-db-0'))?.metadata.ownerReferences?.some(
              ({ kind }) => kind === owner,
            )
          if (policy !== undefined && act === 'delete') await until('the owner', isOwnedBy('StatefulSet'))
          if (act === 'shrink') {
            // A pod takes some time to end: its claim, which goes with it, has it as an owner meanwhile.
            const { kubelet } = system.members['east']!
            kubelet.hold('db-')
            await at.patch('statefulsets', 'db', { spec: { replicas: 0 } })
            await until('the owner', isOwnedBy('Pod'))
            kubelet.release()
          } else await at.delete('statefulsets', 'db', 'Background')
          if (act === 'delete')
            await until('the StatefulSet to go', async () => (await at.get('statefulsets', 'db')) === undefined)
          if (!kept) await until('the claim to go', async () => !(await isThere(at)))
          await until('the pod to go', async () => (await at.get('pods', 'db-0')) === undefined)
          expect(await isThere(at)).to.equal(kept)
        }
      })

    for (const { title, restored, annotations, because } of [
      {
        title: 'whose volume is in another member keep its pods from starting with an empty one',
        restored: claim('data-db-0'),
        annotations: { [volumeAnnotation]: 'west' },
        because: 'in member cluster "west"',
      },
      {
        title: 'that name a volume keep its pods from starting with another one',
        restored: claim('data-db-0', { ...claimSpec('1Gi'), volumeName: 'old' }),
        annotations: {},
        because: 'names volume "old"',
      },
    ])
      it(title, async () => {
        const name = annotations[volumeAnnotation] === undefined ? 'named' : 'elsewhere'
        const upstream = space(system.up, name)
        const below = space(system.members['east']!.client, system.below(name))
        await upstream.begin()
        const { metadata } = restored
        await upstream.create('persistentvolumeclaims', { ...restored, metadata: { ...metadata, annotations } })
        const set = statefulSet({ set: 'db', templates: ['data'], start: 0, replicas: 1, restored: [] })
        await upstream.create('statefulsets', { ...set, metadata: { ...set.metadata, annotations: servingOn('east') } })
        const said = await until('the reason', async () => {
          const found = await upstream.get('statefulsets', 'db')
          return found?.metadata.annotations?.[memberStatusAnnotation('east')]
        })
        expect(said).to.contain(because.replaceAll('"', '\\"'))
        expect(await below.get('statefulsets', 'db')).to.equal(undefined)
      })
  })
}
