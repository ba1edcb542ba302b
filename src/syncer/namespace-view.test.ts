import { expect } from 'chai'
import type { KubeObject } from '../apimachinery/meta/index.ts'
import { placedOnAnnotation, syncerFinalizer, type CopyState } from '../crds/index.ts'
import { viewNamespace } from './namespace-view.ts'

interface Given {
  readonly title: string
  readonly state?: CopyState
  readonly finalizer?: boolean
  readonly deleting?: boolean
  readonly present: boolean
  /** Default: as `present`. */
  readonly refers?: boolean
}

const rows: readonly Given[] = [
  { title: 'a finalizer without a decision of the scheduler', finalizer: true, present: false },
  { title: 'a finalizer without a decision, on its way out', finalizer: true, deleting: true, present: false },
  { title: 'a copy that is only assumed', state: 'Assumed', present: false },
  { title: 'a copy that should be there', state: 'Syncing', present: true },
  { title: 'a copy that is leaving and still there', state: 'Terminating', finalizer: true, present: true },
  { title: 'a copy that has left', state: 'Terminating', present: false },
  { title: 'requests that are forwarded', state: 'Forwarding', finalizer: true, present: true, refers: false },
  { title: 'a copy of a deleted workload', state: 'Serving', finalizer: true, deleting: true, present: true },
  { title: 'a copy of a deleted workload that has left', state: 'Serving', deleting: true, present: false },
]

function workload({ state, finalizer = false, deleting = false }: Given): KubeObject {
  const annotations = state === undefined ? {} : { [placedOnAnnotation]: JSON.stringify({ east: { state } }) }
  const spec = { template: { spec: { containers: [], volumes: [{ name: 's', secret: { secretName: 'keys' } }] } } }
  const metadata = {
    name: 'web',
    annotations,
    ...(finalizer && { finalizers: [syncerFinalizer('east')] }),
    ...(deleting && { deletionTimestamp: '2026-01-01T00:00:00Z' }),
  }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec }
}

describe('what a namespace has in a member', () => {
  for (const row of rows)
    it(`${row.title}: ${row.present ? 'its Services and Secrets are wanted' : 'nothing'}`, () => {
      const view = viewNamespace(
        { workloads: [workload(row)], claims: [], ingresses: [] },
        { member: 'east', clusterPresent: false },
      )
      expect(view.present).to.equal(row.present)
      expect(view.servicesWanted).to.equal(row.present)
      expect(view.references.has('secrets/keys')).to.equal(row.refers ?? row.present)
    })

  it('is leaving when all that is there leaves', () => {
    const [serves, drains] = (['Serving', 'Draining'] as const).map((state) =>
      workload({ title: '', state, finalizer: true, present: true }),
    )
    const isLeaving = (...workloads: KubeObject[]): boolean =>
      viewNamespace({ workloads, claims: [], ingresses: [] }, { member: 'east', clusterPresent: true }).leaving
    expect(isLeaving(drains!)).to.equal(true)
    expect(isLeaving(drains!, serves!)).to.equal(false)
    expect(isLeaving()).to.equal(false)
  })
})
