import { expect } from 'chai'
import type { Placement } from '#crds/index.ts'
import type { Decision } from '#placement/index.ts'
import { PlacementReports } from './placement-status.ts'

const placement: Placement = {
  apiVersion: 'kcp.dev/v1alpha1',
  kind: 'Placement',
  metadata: { name: 'home', generation: 3 },
}
const on = (...names: string[]): Decision => ({ wanted: { kind: 'members', names }, held: [], rejected: [] })
const full = { cluster: 'west', reason: 'InsufficientCapacity', message: 'west is full' } as const
const heldBy: Decision = {
  wanted: { kind: 'undecided' },
  held: [{ cluster: '', reason: 'NoClusterFits', message: 'west is full' }],
  rejected: [full],
}

describe('the status of a Placement', () => {
  const now = '2026-01-01T00:00:00Z'
  const summary = (reports: PlacementReports): unknown[] => {
    const { workloads, held, clusters, rejected, conditions } = reports.statusOf('acme|home', placement, now)
    const [{ status, reason, message } = {}] = conditions ?? []
    return [workloads, held, clusters, rejected, `${status} ${reason}: ${message}`]
  }

  it('counts the workloads by member, and says what is held and why', () => {
    const changed: string[] = []
    const reports = new PlacementReports((key) => changed.push(key))
    expect(summary(reports)).to.deep.equal([0, 0, [], [], 'True NoWorkloads: it decides for no workload'])
    reports.note('deployments acme|shop/web', 'acme|home', on('east'))
    reports.note('deployments acme|shop/web', 'acme|home', on('east'))
    reports.note('deployments acme|shop/db', 'acme|home', heldBy)
    reports.note('deployments acme|shop/other', undefined, on('east'))
    expect(changed, 'an equal decision changes nothing').to.deep.equal(['acme|home', 'acme|home'])
    expect(summary(reports)).to.deep.equal([
      2,
      1,
      [{ name: 'east', workloads: 1 }],
      [full],
      'False Held: 1 of 2 workloads are held; the first is deployments acme|shop/db: west is full',
    ])
    reports.note('deployments acme|shop/db', '|global', on('west'))
    expect(summary(reports)).to.deep.equal([
      1,
      0,
      [{ name: 'east', workloads: 1 }],
      [],
      'True AllPlaced: all 1 workloads have a member cluster',
    ])
    reports.forget('deployments acme|shop/web')
    expect(summary(reports)[0]).to.equal(0)
  })

  it('lists the first fifty members', () => {
    const reports = new PlacementReports(() => undefined)
    reports.note('w', 'acme|home', on(...Array.from({ length: 80 }, (_, i) => `m${10 + i}`)))
    const { clusters = [] } = reports.statusOf('acme|home', placement, now)
    expect([clusters.length, clusters[0]?.name, clusters.at(-1)?.name]).to.deep.equal([50, 'm10', 'm59'])
  })
})
