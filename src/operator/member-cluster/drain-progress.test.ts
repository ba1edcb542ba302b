import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { drainProgress, type WorkloadThere } from './drain-progress.ts'

function workload(name: string, placed: Record<string, string>, held?: string): WorkloadThere {
  const states = Object.fromEntries(Object.entries(placed).map(([member, state]) => [member, { state }]))
  const annotations = { 'kcp.dev/placed-on': JSON.stringify(states), ...(held && { 'kcp.dev/held': held }) }
  const metadata: KubeObject['metadata'] = { name, namespace: 'shop', annotations }
  return { cluster: 'acme', workload: { apiVersion: 'apps/v1', kind: 'Deployment', metadata } }
}

describe('the progress of a drain', () => {
  const lines = (...workloads: WorkloadThere[]): string[] =>
    drainProgress('east', { workloads, claims: [], arriving: [] }).remaining.map(
      ({ name, state, message }) => `${name} ${state}: ${message}`,
    )

  it('tells where each workload goes, and first what can go nowhere', () => {
    expect(
      lines(
        workload('api', { east: 'Serving', west: 'Syncing' }),
        workload('db', { east: 'Serving' }, 'no member fits'),
        workload('old', { east: 'Terminating' }),
        workload('web', { east: 'Draining', west: 'Serving' }),
        workload('new', { east: 'Serving' }),
      ),
    ).to.deep.equal([
      'db Held: no member fits',
      'api Moving: to member cluster "west" (Syncing)',
      'new Moving: it waits for a decision',
      'old Moving: it is being removed',
      'web Moving: to member cluster "west" (Serving)',
    ])
  })
  it('says that a Job is waited for', () => {
    const { cluster, workload: object } = workload('backup', { east: 'Serving' })
    expect(lines({ cluster, workload: { ...object, kind: 'Job' } })).to.deep.equal([
      'backup Held: it does not move: it stays until it ends or somebody deletes it',
    ])
  })
  it('tells which volumes without a workload move, and which do not', () => {
    const claim = (name: string) => ({
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name, namespace: 'shop' },
    })
    const move = {
      ...({ apiVersion: 'kcp.dev/v1alpha1', kind: 'VolumeMove', metadata: { name: 'v-1' } } as const),
      spec: {
        ...{ logicalCluster: 'acme', namespace: 'shop', claim: 'moving', claimUid: 'u', from: 'east', to: 'west' },
        ...({ way: 'Copy', retainSeconds: 5 } as const),
      },
      status: { summary: 'round 1: 40 %' },
    }
    const claims = [
      { cluster: 'acme', claim: claim('moving'), move },
      { cluster: 'acme', claim: claim('stuck') },
    ]
    const { moving, held, claims: count, remaining } = drainProgress('east', { workloads: [], claims, arriving: [] })
    expect([moving, held, count]).to.deep.equal([1, 1, 2])
    expect(remaining.map(({ name, state }) => [name, state])).to.deep.equal([
      ['stuck', 'Held'],
      ['moving', 'Moving'],
    ])
    expect(remaining[1]?.message).to.equal('its volume moves to member cluster "west": round 1: 40 %')
  })
  it('waits for a volume whose claim is about to arrive', () => {
    const arriving = {
      ...({ apiVersion: 'kcp.dev/v1alpha1', kind: 'VolumeMove', metadata: { name: 'v-1' } } as const),
      spec: {
        ...{ logicalCluster: 'acme', namespace: 'shop', claim: 'data', claimUid: 'u', from: 'west', to: 'east' },
        ...({ way: 'Copy', retainSeconds: 5 } as const),
      },
      status: { phase: 'Binding' as const },
    }
    const { moving, claims, remaining } = drainProgress('east', { workloads: [], claims: [], arriving: [arriving] })
    expect([moving, claims]).to.deep.equal([1, 0])
    expect(remaining.map(({ name, message }) => [name, message])).to.deep.equal([
      ['data', 'its volume arrives from member cluster "west", and leaves again: the claim gets its new volume'],
    ])
  })
  it('counts all and lists the first fifty', () => {
    const many = Array.from({ length: 70 }, (_, i) =>
      workload(`w${i}`, { east: 'Serving' }, i < 20 ? 'full' : undefined),
    )
    const { moving, held, remaining } = drainProgress('east', { workloads: many, claims: [], arriving: [] })
    expect([moving, held, remaining.length]).to.deep.equal([50, 20, 50])
    expect(remaining.slice(0, 20).every(({ state }) => state === 'Held')).to.equal(true)
  })
})
