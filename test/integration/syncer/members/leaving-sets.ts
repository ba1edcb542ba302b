// StatefulSets that leave a member before all that they have there is known: their data, or the end of a pod.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, memberStatusAnnotation, placedOnAnnotation, type PlacedOn } from '#crds/index.ts'
import { space, until, type Space, type SyncedMembers } from '../syncers-of-members.ts'

const quotas = { group: '', version: 'v1', resource: 'resourcequotas' } as const
const { signal } = new AbortController()

function statefulSet(replicas: number, templates: readonly string[]): KubeObject {
  const labels = { app: 'db' }
  const claim = { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } } }
  const spec = {
    ...{ serviceName: 'db', replicas, selector: { matchLabels: labels } },
    template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'example/any:1' }] } },
    volumeClaimTemplates: templates.map((name) => ({ metadata: { name }, spec: claim })),
  }
  return { apiVersion: 'apps/v1', kind: 'StatefulSet', metadata: { name: 'db' }, spec }
}

const placed = (record: PlacedOn): Record<string, string> => ({ [placedOnAnnotation]: JSON.stringify(record) })

/** `started`: members east and west. */
export function defineLeavingSets(started: () => SyncedMembers): void {
  describe('a StatefulSet that leaves a member', function () {
    this.timeout(120_000)
    let system: SyncedMembers
    before(() => {
      system = started()
    })
    const spaces = (name: string): Readonly<Record<'up' | 'east' | 'west', Space>> => {
      const below = (member: string): Space => space(system.members[member]!.client, system.below(name))
      return { up: space(system.up, name), east: below('east'), west: below('west') }
    }
    const decide = (up: Space, record: PlacedOn): Promise<unknown> =>
      up.patch('statefulsets', 'db', { metadata: { annotations: placed(record) } })

    it('stays while a quota keeps its claims from being known, and says so', async () => {
      const { up, east } = spaces('unknown')
      await up.begin()
      const none = { persistentvolumeclaims: '0' }
      const metadata = { name: 'none', namespace: 'unknown' }
      const quota: KubeObject = { apiVersion: 'v1', kind: 'ResourceQuota', metadata, spec: { hard: none } }
      await system.up.create(quotas, quota, { signal })
      const status = { status: { hard: none, used: none } }
      await system.up.patch(quotas, metadata, 'merge', status, { subresource: 'status', signal })
      const set = statefulSet(1, ['data'])
      const annotations = placed({ east: { state: 'Serving' } })
      await up.create('statefulsets', { ...set, metadata: { ...set.metadata, annotations } })
      await until('the claim in the member', () => east.get('persistentvolumeclaims', 'data-db-0'))
      await until('the pod', () => up.get('pods', 'db-0'))
      await decide(up, { east: { state: 'Terminating' } })
      const said = await until('the reason', async () => {
        const found = await up.get('statefulsets', 'db')
        const { error } = JSON.parse(found?.metadata.annotations?.[memberStatusAnnotation('east')] ?? '{}') as {
          error?: string
        }
        return error?.includes('data-db-0') && error
      })
      expect(said).to.include('is not in the logical cluster yet: elsewhere its pod would start without the data')
      expect((await east.get('statefulsets', 'db'))?.metadata.deletionTimestamp).to.equal(undefined)
      await system.up.delete(quotas, metadata, { signal })
      const claim = await until('the claim', () => up.get('persistentvolumeclaims', 'data-db-0'))
      expect(claim.metadata.annotations?.[memberAnnotation]).to.equal('east')
      await until('the copy to go', async () => (await east.get('statefulsets', 'db')) === undefined)
    })

    it('starts a pod in another member once the pod of this name has ended', async () => {
      const { up, east, west } = spaces('ending')
      await up.begin()
      const set = statefulSet(2, [])
      const both: PlacedOn = {
        east: { state: 'Serving', start: 0, replicas: 1 },
        west: { state: 'Serving', start: 1, replicas: 1 },
      }
      await up.create('statefulsets', { ...set, metadata: { ...set.metadata, annotations: placed(both) } })
      await until('both pods', async () => (await up.list('pods')).length === 2)
      const { kubelet } = system.members['west']!
      kubelet.hold('db-')
      // The scheduler counts pods: one that ends and one that lacks look like all.
      await decide(up, {
        east: { state: 'Serving', start: 0, replicas: 2 },
        west: { state: 'Serving', start: 2, replicas: 0 },
      })
      await until('the pod to end', async () => {
        const ending = await west.get('pods', 'db-1')
        return ending?.metadata.deletionTimestamp !== undefined
      })
      // What is decided later is done by then.
      const later = { ...set, metadata: { name: 'later', annotations: placed({ east: { state: 'Serving' } }) } }
      await up.create('statefulsets', later)
      await until('a later pod', () => east.get('pods', 'later-1'))
      expect(await east.get('pods', 'db-1'), 'the pod runs twice').to.equal(undefined)
      kubelet.release()
      await until('the pod', () => east.get('pods', 'db-1'))
    })
  })
}
