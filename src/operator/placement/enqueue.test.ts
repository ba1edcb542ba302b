import { expect } from 'chai'
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import type { ChangeListener } from '../../client/index.ts'
import { volumeAnnotation } from '../../crds/index.ts'
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
      ...{ tenantPlacements: silent, adminPlacements: silent, clusters: silent },
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
    const visited: string[] = []
    const end = enqueueChanges(inputs, (key) => visited.push(key))
    changed({ key: `${namespaceKey}/data`, before: claim(), after: claim('east') })
    expect(visited).to.deep.equal(['db', 'queue'])
    changed({ key: `${namespaceKey}/data`, before: claim('east'), after: claim('east') })
    expect(visited, 'nothing has changed').to.have.length(2)
    end()
  })
})
