import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ChangeListener } from '#client/index.ts'
import { ClusterPresence } from './cluster-presence.ts'

const workload = (...members: string[]): KubeObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    annotations: {
      'kcp.dev/placed-on': JSON.stringify(Object.fromEntries(members.map((name) => [name, { state: 'Serving' }]))),
    },
  },
})

describe('the logical clusters in members', () => {
  it('are those with workloads there, and changes are told once', () => {
    let change: ChangeListener<KubeObject> | undefined
    const deployments = {
      onChange: (listener: ChangeListener<KubeObject>): (() => void) => {
        change = listener
        return () => undefined
      },
    }
    using presence = new ClusterPresence({ deployments })
    const told: string[] = []
    presence.onChange((member) => told.push(member))
    const clusters = (member: string): string[] => [...presence.clustersIn(member)]
    change?.({ key: 'acme|shop|web', before: undefined, after: workload('east') })
    change?.({ key: 'acme|shop|api', before: undefined, after: workload('east') })
    expect([clusters('east'), clusters('west'), told]).to.deep.equal([['acme'], [], ['east']])
    change?.({ key: 'acme|shop|web', before: workload('east'), after: workload('west') })
    expect([clusters('east'), clusters('west')]).to.deep.equal([['acme'], ['acme']])
    change?.({ key: 'acme|shop|api', before: workload('east'), after: undefined })
    expect([clusters('east'), told]).to.deep.equal([[], ['east', 'west', 'east']])
  })
})
