import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { plainAddress, PodAddresses, podIn, podRecord, type TenantPod } from './pod-addresses.ts'

const acme = 'acmeacme22'
const bob = 'bobbobbob2'
const record = (clusterId: string, name: string, ...addresses: string[]): TenantPod => ({
  pod: `${clusterId}-shop/${name}`,
  namespace: `${clusterId}-shop`,
  clusterId,
  addresses,
})

function pod(
  status: object,
  { spec = {}, namespace = `${acme}-shop` }: { spec?: object; namespace?: string } = {},
): KubeObject {
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'a', namespace }, spec, status }
}

describe('the addresses of pods', () => {
  const podIPs = [{ ip: '10.0.0.1' }, { ip: 'fd00::1' }]
  for (const { title, given, addresses } of [
    { title: 'all of a pod', given: pod({ phase: 'Running', podIPs }), addresses: ['10.0.0.1', 'fd00::1'] },
    { title: 'the one of an old status', given: pod({ podIP: '10.0.0.1' }), addresses: ['10.0.0.1'] },
    { title: 'none before it has one', given: pod({ phase: 'Pending' }), addresses: undefined },
    {
      title: 'none that it shares with its node',
      given: pod({ podIPs }, { spec: { hostNetwork: true } }),
      addresses: undefined,
    },
    { title: 'none of a pod that has ended', given: pod({ phase: 'Succeeded', podIPs }), addresses: undefined },
  ])
    it(`are ${title}`, () => expect(podRecord(given)?.addresses).to.deep.equal(addresses))

  it('are of the logical cluster whose id the usual name of the namespace has', () => {
    const here = podRecord(pod({ podIPs }, { namespace: 'shop' }))
    expect(here && podIn(here, `${acme}-shop`)?.clusterId).to.equal(acme)
    expect(here && podIn(here, 'kube-system')).to.equal(undefined)
  })

  it('are compared without the form of a listener', () => {
    expect([plainAddress('::ffff:10.0.0.1'), plainAddress('fd00::1')]).to.deep.equal(['10.0.0.1', 'fd00::1'])
  })

  it('belong to the pod that has them now', async () => {
    const pods = new PodAddresses({ find: () => Promise.resolve(undefined) })
    pods.set(undefined, record(acme, 'a', '10.0.0.1'))
    pods.set(undefined, record(bob, 'b', '10.0.0.1'))
    pods.set(record(acme, 'a', '10.0.0.1'), undefined)
    expect(await pods.clusterOf('10.0.0.1')).to.equal(bob)
    expect([pods.isOfPod('10.0.0.1', `${bob}-shop/b`), pods.isOfPod('10.0.0.1', `${acme}-shop/a`)]).to.deep.equal([
      true,
      false,
    ])
  })

  it('are asked for once in thirty seconds, and a watch that tells more counts', async () => {
    let now = 1
    let asked = 0
    const pods = new PodAddresses({ now: () => now, find: () => Promise.resolve((asked++, undefined)) })
    const answers = await Promise.all([pods.clusterOf('10.0.0.9'), pods.clusterOf('10.0.0.9')])
    expect([answers, await pods.clusterOf('10.0.0.9'), asked]).to.deep.equal([[undefined, undefined], undefined, 1])
    now += 31_000
    await pods.clusterOf('10.0.0.9')
    expect(asked).to.equal(2)
    pods.set(undefined, record(bob, 'b', '10.0.0.9'))
    expect(await pods.clusterOf('10.0.0.9')).to.equal(bob)
  })

  it('that were of no pod stay so while the API is away, and new ones are refused', async () => {
    let now = 1
    let isAway = false
    const find = (): Promise<undefined> => (isAway ? Promise.reject(new Error('away')) : Promise.resolve(undefined))
    const pods = new PodAddresses({ now: () => now, find })
    await pods.clusterOf('10.0.0.9')
    isAway = true
    now += 31_000
    expect(await pods.clusterOf('10.0.0.9')).to.equal(undefined)
    expect(await pods.clusterOf('10.0.0.8').catch((error: unknown) => (error as Error).message)).to.equal('away')
  })
})
