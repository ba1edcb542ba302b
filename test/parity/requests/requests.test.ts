// Sends the same requests to a real kube-apiserver and to a logical cluster: status, headers, bodies and watch events
// must be equal. Differences are listed in known-differences.ts; a listed row that does not differ fails.
import { expect } from 'chai'
import { startCluster } from '#test/support/index.ts'
import { startOurServer } from '#test/parity/support/our-server.ts'
import { betaFlags } from '#test/parity/support/two-servers.ts'
import { knownDifferences } from './known-differences.ts'
import type { Comparable } from './normalise.ts'
import { play, type Player } from './play.ts'
import { get, post, type Topic } from './row.ts'
import { topics } from './topics/index.ts'
import { openServer } from './wire.ts'

/** Waits for the objects that controllers put into a new namespace. */
function preamble(name: string): Topic['rows'] {
  return [
    post('/api/v1/namespaces', { metadata: { name } }, { what: 'namespace of the topic' }),
    get(`/api/v1/namespaces/${name}/serviceaccounts/default`, { until: 200 }),
    get(`/api/v1/namespaces/${name}/configmaps/kube-root-ca.crt`, { until: 200 }),
  ]
}

/** Appends a number to repeated titles. */
function numbered(rows: Topic['rows']): Topic['rows'] {
  const times = new Map<string, number>()
  return rows.map((row) => {
    const time = (times.get(row.title) ?? 0) + 1
    times.set(row.title, time)
    return time === 1 ? row : { ...row, title: `${row.title} (${time})` }
  })
}

describe('requests compared with kube-apiserver 1.34.3', () => {
  const stack = new AsyncDisposableStack()
  let real: Player
  let ours: Player

  before(async () => {
    const [cluster, kcp] = await Promise.all([
      startCluster({
        name: 'requests',
        controllerManager: true,
        flags: {
          // Keeps old revisions, however long a run takes.
          'kube-apiserver': [...betaFlags, '--etcd-compaction-interval=0'],
          'kube-controller-manager': [
            '--controllers=namespace-controller,serviceaccount-controller,root-ca-certificate-publisher-controller,garbage-collector-controller',
          ],
        },
      }).then((started) => stack.use(started)),
      startOurServer({ name: 'requests', flags: [] }).then((started) => stack.use(started)),
    ])
    const { kubeconfig, base } = kcp
    real = { server: stack.use(openServer(cluster.kubeconfig)), base: '' }
    ours = { server: stack.use(openServer(kubeconfig)), base }
  })
  after(() => stack.disposeAsync())

  for (const topic of topics)
    describe(topic.name, () => {
      const rows = numbered([...preamble(topic.name), ...topic.rows])
      let theirs: Comparable[] = []
      let responses: Comparable[] = []

      before(async () => {
        const whole = { ...topic, rows }
        ;[theirs, responses] = await Promise.all([play(whole, real), play(whole, ours)])
      })

      for (const [index, row] of rows.entries())
        it(row.title, () => {
          const name = `${topic.name}: ${row.title}`
          const shown = row.statusOnly === true ? statusOf : whole
          const check = (): void => {
            expect(shown(responses[index])).to.deep.equal(shown(theirs[index]))
          }
          const reason = knownDifferences[name]
          if (reason === undefined) check()
          else expect(check, `"${name}" is listed as different (${reason}) and is not any more`).to.throw()
        })
    })

  it('lists only rows that exist as known differences', () => {
    const names = new Set(topics.flatMap(({ name, rows }) => numbered(rows).map(({ title }) => `${name}: ${title}`)))
    expect(Object.keys(knownDifferences).filter((name) => !names.has(name))).to.deep.equal([])
  })
})

const whole = (response: Comparable | undefined): unknown => response
const statusOf = (response: Comparable | undefined): unknown => response?.status
