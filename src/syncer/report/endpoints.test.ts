import { expect } from 'chai'
import { memberAnnotation, syncerFieldManager } from '#crds/index.ts'
import { managedByLabel } from '#syncer/transform/slice-labels.ts'
import { countEndpoints } from './endpoints.ts'

type Slice = Parameters<typeof countEndpoints>[0][number]

describe('the endpoints that a member reports of a Service', () => {
  const slice = (addressType: string, ready: readonly boolean[], member?: string): Slice => ({
    apiVersion: 'discovery.k8s.io/v1',
    kind: 'EndpointSlice',
    metadata: {
      name: 'web',
      labels: member === undefined ? {} : { [managedByLabel]: syncerFieldManager, [memberAnnotation]: member },
    },
    addressType,
    endpoints: ready.map((isReady) => ({ conditions: { ready: isReady } })),
  })

  it('are counted by the member they run in, in all slices of it', () => {
    const slices = [
      slice('IPv4', [true, true]),
      slice('IPv4', [true, false]),
      slice('IPv4', [true], 'west'),
      slice('IPv4', [false], 'south'),
    ]
    expect(countEndpoints(slices, 'east')).to.deep.equal({ east: 3, west: 1 })
  })

  it('count once for a Service with two IP families', () => {
    const slices = [slice('IPv4', [true, true]), slice('IPv6', [true, true]), slice('IPv6', [true], 'west')]
    expect(countEndpoints(slices, 'east')).to.deep.equal({ east: 2, west: 1 })
  })

  it('count where one of two IP families has none', () => {
    expect(countEndpoints([slice('IPv4', [true]), slice('IPv6', [])], 'east')).to.deep.equal({ east: 1 })
  })
})
