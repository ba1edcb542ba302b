// Claims of generic ephemeral volumes: shown as a cluster shows them where the same manifest is applied directly.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, memberUidAnnotation } from '#crds/index.ts'
import { servingOn, space, until, type Space, type SyncedMembers } from '../syncers-of-members.ts'

/** `started`: a member east, perhaps with others. */
export function defineEphemeralClaims(started: () => SyncedMembers): void {
  describe('the claim of an ephemeral volume', function () {
    this.timeout(120_000)
    const labels = { app: 'cache' }
    const claim = {
      metadata: { labels: { size: 'small' }, annotations: { team: 'blue' } },
      spec: { accessModes: ['ReadWriteOnce'], resources: { requests: { storage: '1Mi' } }, storageClassName: 'none' },
    }
    const spec = {
      containers: [{ name: 'main', image: 'example/any:1' }],
      volumes: [{ name: 'scratch', ephemeral: { volumeClaimTemplate: claim } }],
    }
    const deployment: KubeObject = {
      ...{ apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'cache' } },
      spec: { replicas: 1, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } },
    }
    const pod: KubeObject = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'single' }, spec }

    /** The claims, each with its pod in place of names and uids that differ from cluster to cluster. */
    const claimsIn = async (at: Space): Promise<unknown[]> => {
      const pods = new Map((await at.list('pods')).map(({ metadata }) => [metadata.uid, metadata.name ?? '']))
      const shown = (await at.list('persistentvolumeclaims')).map(({ metadata, ...one }) => {
        const [owner, ...others] = metadata.ownerReferences ?? []
        const name = pods.get(owner?.uid)
        const { [memberAnnotation]: _m, [memberUidAnnotation]: _u, ...annotations } = metadata.annotations ?? {}
        return {
          name: metadata.name?.replace(name ?? '?', 'POD'),
          ...{ labels: metadata.labels, annotations, spec: one['spec'] },
          owner: [owner?.kind, owner?.name === name, owner?.controller, others.length],
        }
      })
      return shown.sort((a, b) => JSON.stringify(a).localeCompare(JSON.stringify(b)))
    }

    it('is owned by its pod, and comes and goes with it', async () => {
      const system = started()
      const east = system.members['east']!.client
      const [upstream, direct] = [space(system.up, 'scratch'), space(east, 'scratch')]
      const annotations = servingOn('east')
      for (const at of [upstream, direct]) {
        await at.begin()
        const placed = at === upstream ? { annotations } : {}
        await at.create('deployments', { ...deployment, metadata: { ...deployment.metadata, ...placed } })
        await at.create('pods', { ...pod, metadata: { ...pod.metadata, ...placed } })
        await until('two claims', async () => (await at.list('persistentvolumeclaims')).length === 2)
      }
      const expected = await claimsIn(direct)
      expect(expected).to.have.length(2)
      expect(await claimsIn(upstream)).to.deep.equal(expected)
      const namesOf = async (): Promise<string[]> =>
        (await upstream.list('persistentvolumeclaims')).map(({ metadata }) => metadata.name ?? '').sort()
      const before = await namesOf()
      for (const { metadata } of await upstream.list('pods'))
        await upstream.delete('pods', metadata.name ?? '', 'Background')
      await until('the claim of the new pod alone', async () => {
        const [now, ...others] = await namesOf()
        return now !== undefined && others.length === 0 && !before.includes(now)
      })
      await until('the claims in the member', async () => {
        const left = await space(east, system.below('scratch')).list('persistentvolumeclaims')
        return left.length === 1
      })
    })
  })
}
