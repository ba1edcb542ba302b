import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ChangeListener } from '#client/index.ts'
import { volumeAnnotation } from '#crds/index.ts'
import { enqueueChanges } from './enqueue.ts'
import type { PlacementInputs } from './placement-inputs.ts'

const namespaceKey = 'acme|shop'

function workload(name: string, claimName?: string): KubeObject {
  const volumes = claimName === undefined ? [] : [{ name: 'data', persistentVolumeClaim: { claimName } }]
  const spec = { template: { spec: { containers: [], volumes } } }
  return { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name, namespace: 'shop' }, spec }
}

function claim(member?: string): KubeObject {
  const annotations = member === undefined ? {} : { [volumeAnnotation]: member }
  return {
    apiVersion: 'v1',
    kind: 'PersistentVolumeClaim',
    metadata: { name: 'data', namespace: 'shop', annotations },
  }
}

describe('a claim that gets a member', () => {
  it('concerns what uses it and what waits for others of the namespace, not all workloads there', () => {
    const there = [
      workload('db', 'data'),
      workload('cache', 'other'),
      ...Array.from({ length: 50 }, () => workload('web')),
    ]
    let changed: ChangeListener<KubeObject> = () => undefined
    const silent = { onChange: () => () => undefined }
    const inputs = {
      ...{ workloads: [], services: silent, namespaces: silent, members: silent },
      ...{ tenantPlacements: silent, adminPlacements: silent, clusters: silent, volumeMoves: silent },
      claims: {
        onChange: (listener: ChangeListener<KubeObject>) => {
          changed = listener
          return () => undefined
        },
      },
      workloadKeysInNamespace: (key: string, wanted: (one: KubeObject) => boolean) =>
        key === namespaceKey ? there.filter(wanted).map(({ metadata }) => metadata.name) : [],
      workloadKeysWaitingIn: (key: string) => (key === namespaceKey ? ['queue'] : []),
    } as unknown as PlacementInputs
    const reconciled: string[] = []
    const end = enqueueChanges(inputs, (key) => reconciled.push(key))
    changed({ key: `${namespaceKey}/data`, before: claim(), after: claim('east') })
    expect(reconciled).to.deep.equal(['db', 'queue'])
    changed({ key: `${namespaceKey}/data`, before: claim('east'), after: claim('east') })
    expect(reconciled, 'nothing has changed').to.have.length(2)
    end()
  })
})

describe('a member that stops to answer', () => {
  it('concerns the workloads of others that do not answer only when failover is frozen by it', () => {
    let changed: ChangeListener<KubeObject> = () => undefined
    const silent = { onChange: () => () => undefined }
    const unreachable: string[] = []
    const inputs = {
      ...{ workloads: [], services: silent, claims: silent, namespaces: silent },
      ...{ tenantPlacements: silent, adminPlacements: silent, clusters: silent, volumeMoves: silent },
      members: {
        onChange: (listener: ChangeListener<KubeObject>) => {
          changed = listener
          return () => undefined
        },
      },
      unreachable,
      get isFailoverFrozen() {
        return unreachable.length >= 3
      },
      workloadKeysConcernedBy: (member: string) => [`on ${member}`],
      workloadKeysIn: (member: string) => [`on ${member}`],
    } as unknown as PlacementInputs
    const reconciled: string[] = []
    const end = enqueueChanges(inputs, (key) => reconciled.push(key))
    const member = (status: string): KubeObject => ({
      apiVersion: 'kcp.dev/v1alpha1',
      kind: 'MemberCluster',
      metadata: { name: 'm' },
      status: { conditions: [{ type: 'Reachable', status }] },
    })
    const stops = (key: string): string[] => {
      unreachable.push(key)
      changed({ key, before: member('True'), after: member('False') })
      return reconciled.splice(0)
    }
    expect(stops('a')).to.deep.equal(['on a'])
    expect(stops('b')).to.deep.equal(['on b'])
    expect(stops('c'), 'frozen now').to.deep.equal(['on c', 'on a', 'on b'])
    expect(stops('d')).to.deep.equal(['on d'])
    unreachable.splice(0, 2)
    changed({ key: 'a', before: member('False'), after: member('True') })
    expect(reconciled.splice(0), 'no longer frozen').to.deep.equal(['on a', 'on c', 'on d'])
    end()
  })
})
