import { expect } from 'chai'
import type { ClusterId, ClusterName } from '#apimachinery/meta/index.ts'
import { notFound, serviceUnavailable, statusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { createMemberMetrics } from './member-metrics.ts'

const { signal } = new AbortController()
const cluster: LogicalCluster = {
  name: 'acme' as ClusterName,
  id: 'abcdefghij' as ClusterId,
  uid: 'u',
  creationTimestamp: '2026-01-01T00:00:00Z',
  owners: [],
  deleting: false,
}
const place = { member: 'east', cluster, namespace: 'shop' }
const measured = {
  kind: 'PodMetricsList',
  items: [
    {
      metadata: { name: 'web', namespace: 'abcdefghij-shop' },
      timestamp: '2026-01-01T00:00:00Z',
      window: '15s',
      containers: [{ name: 'app', usage: { cpu: '250m', memory: '12Mi' } }],
    },
    { metadata: { name: 'odd' }, containers: 'none' },
  ],
}

/** A member that answers in this way, and the paths it was asked for. */
function memberThat(response: () => unknown) {
  const asked: string[] = []
  let now = 0
  const raw = async (path: string): Promise<unknown> => {
    asked.push(path)
    return await Promise.resolve().then(response)
  }
  const client = { raw } as unknown as KubeClient
  const members = {
    byName: () =>
      Promise.resolve({ name: 'east', client, transport: {} as never, passing: {} as never, way: {} as never }),
    haveMetrics: () => true,
  }
  const metrics = createMemberMetrics({ members, clock: { monotonic: () => now } })
  return { metrics, asked, pass: (ms: number) => void (now += ms) }
}

describe('the metrics of a member', () => {
  it('are asked for once for a namespace, and again after 15 s', async () => {
    const { metrics, asked, pass } = memberThat(() => measured)
    const [usage] = await Promise.all([metrics.usageIn(place, signal), metrics.usageIn(place, signal)])
    expect([...usage]).to.deep.equal([
      [
        'web',
        {
          timestamp: '2026-01-01T00:00:00Z',
          window: '15s',
          containers: [{ name: 'app', usage: { cpu: '250m', memory: '12Mi' } }],
        },
      ],
    ])
    pass(14_999)
    await metrics.usageIn(place, signal)
    expect(asked).to.deep.equal(['/apis/metrics.k8s.io/v1beta1/namespaces/abcdefghij-shop/pods'])
    pass(1)
    await metrics.usageIn(place, signal)
    await metrics.usageIn({ ...place, namespace: 'other' }, signal)
    expect(asked).to.have.length(3)
  })

  for (const { title, error, message } of [
    {
      title: 'has no metrics server',
      error: notFound({ group: 'metrics.k8s.io', resource: 'pods' }, ''),
      message: 'member cluster "east" has no metrics: its administrator has to install a metrics server there',
    },
    {
      title: 'has one that does not answer',
      error: serviceUnavailable('the server is currently unable to handle the request'),
      message: 'the metrics of member cluster "east" can\'t be read now',
    },
    {
      title: 'joined before kcp asked for this right',
      error: statusError(403, 'Forbidden', 'pods.metrics.k8s.io is forbidden'),
      message: 'member cluster "east" does not let kcp do this yet: it has to be joined again',
    },
  ])
    it(`say so where the member ${title}`, async () => {
      const { metrics, asked, pass } = memberThat(() => {
        throw error
      })
      const refused = async (): Promise<unknown> =>
        await metrics.usageIn(place, signal).catch((found: unknown) => found)
      expect(await refused()).to.deep.include({ code: 503, message })
      await refused()
      expect(asked, 'asked again at once').to.have.length(1)
      pass(5000)
      await refused()
      expect(asked, 'asked again later').to.have.length(2)
    })
})
