import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { contentHash, workloadKindOf, type PlacedOn } from '#crds/index.ts'
import { decisionPatch } from './apply.ts'

const spec = { replicas: 1 }
const report = (message: string): string =>
  JSON.stringify({
    observed: contentHash(spec),
    replicas: 1,
    availableReplicas: 1,
    conditions: [{ type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message }],
  })
const workload: KubeObject = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    name: 'web',
    namespace: 'default',
    resourceVersion: '7',
    generation: 1,
    annotations: { 'status.kcp.dev/east': report('of east'), 'status.kcp.dev/west': report('of west') },
  },
  spec,
  status: {
    observedGeneration: 1,
    replicas: 2,
    availableReplicas: 2,
    conditions: [{ type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message: 'of east' }],
  },
}
const patchTo = (after: PlacedOn, held: readonly { reason: string; message: string }[] = []): unknown =>
  decisionPatch(workloadKindOf('deployments')!, workload, {
    after,
    held: held as never,
    move: undefined,
    now: '2026-01-01T00:00:00Z',
    isReady: () => true,
  }).status

describe('the patch of a decision', () => {
  it('changes nothing of the status while the same copies serve', () => {
    expect(patchTo({ east: { state: 'Serving' }, west: { state: 'Serving' } })).to.equal(undefined)
  })
  it('takes conditions from the copies that go on serving, so that no syncer has to', () => {
    expect(patchTo({ east: { state: 'Draining' }, west: { state: 'Serving' } })).to.deep.equal({
      observedGeneration: 1,
      replicas: 2,
      availableReplicas: 2,
      conditions: [{ type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message: 'of west' }],
    })
  })
  it('adds condition Placed to these', () => {
    const held = [{ reason: 'Held', message: 'there is no member cluster "mars"' }]
    const status = patchTo({ east: { state: 'Draining' }, west: { state: 'Serving' } }, held) as {
      conditions: { type: string; message: string }[]
    }
    expect(status.conditions.map(({ type, message }) => [type, message])).to.deep.equal([
      ['Progressing', 'of west'],
      ['Placed', 'there is no member cluster "mars"'],
    ])
  })
})
