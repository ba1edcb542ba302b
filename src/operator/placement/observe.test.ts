import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { memberAnnotation, memberStatusAnnotation, placedOnAnnotation, workloadKindOf } from '#crds/index.ts'
import { observe } from './observe.ts'
import type { PlacementInputs } from './placement-inputs.ts'

describe('the volumes of a StatefulSet, as its placement sees them', () => {
  const object = (kind: string, name: string, annotations: Record<string, string>, spec: object = {}): KubeObject => ({
    ...{ apiVersion: 'apps/v1', kind, metadata: { name, namespace: 'shop', annotations }, spec },
  })
  const claim = (name: string): KubeObject => object('PersistentVolumeClaim', name, { [memberAnnotation]: 'east' })
  const set = (pods: number): KubeObject =>
    object(
      'StatefulSet',
      'db',
      {
        [placedOnAnnotation]: JSON.stringify({ east: { state: 'Serving' }, west: { state: 'Assumed' } }),
        [memberStatusAnnotation('east')]: JSON.stringify({ replicas: pods }),
      },
      { replicas: 2, template: {}, volumeClaimTemplates: [{ metadata: { name: 'data' } }] },
    )
  const observed = (workload: KubeObject, claims: readonly KubeObject[]) => {
    const owner = { metadata: { name: 'acme' }, status: {} }
    const none = { store: { get: () => undefined, list: () => [] } }
    const inputs = {
      clusters: { store: { get: () => owner } },
      ...{ rebalancing: new Map(), members: none, namespaces: none, adminPlacements: none },
      claimsIn: () => claims,
      ...{ servicesIn: () => [], tenantPlacementsIn: () => [], inheritedPlacements: () => [], movesOfClaim: () => [] },
      ...{ labelsOf: () => ({}), membersOfOthers: () => [], isFenced: () => false, isReady: () => true },
      placedLimits: { roomFor: () => undefined },
      usage: { requestsOfWorkload: () => new Map() },
    } as unknown as PlacementInputs
    const kind = workloadKindOf('statefulsets')!
    const ref = { kind, cluster: 'acme', namespace: 'shop', name: 'db', objectKey: 'acme/shop/db' }
    return observe(ref, workload, inputs, 0)?.volumes
  }

  it('are not known while a member has more pods than claims are in the logical cluster', () => {
    for (const [claims, lacking] of [
      [[], 'data-db-0'],
      [[claim('data-db-0')], 'data-db-1'],
    ] as const) {
      const volumes = observed(set(2), claims)
      expect(volumes).to.include({ unknownIn: 'east' })
      expect([volumes?.isCopied('west'), volumes?.byOrdinal?.isCopied(1, 'west')]).to.deep.equal([false, false])
      expect(volumes?.progress).to.equal(
        `claim "${lacking}" of member cluster "east" is not in the logical cluster yet: without it, its data would stay behind`,
      )
    }
  })
  it('are those of its claims once all are there, and none before there are pods', () => {
    expect(observed(set(2), [claim('data-db-0'), claim('data-db-1')])).to.deep.include({ in: ['east'] })
    expect(observed(set(2), [claim('data-db-0'), claim('data-db-1')])).not.to.have.property('unknownIn')
    expect(observed(set(0), [])).to.equal(undefined)
  })
})
