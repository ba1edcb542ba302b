// The drain of a member with twenty applications that have volumes, and with volumes that no workload uses: all of them
// leave, a bounded number at a time, and no write is lost.
import { expect } from 'chai'
import { kubectl, needsNodes, runKcp, waitFor } from '#test/support/index.ts'
import { deleteAll } from '#test/e2e/delete-all.ts'
import { endLabAfterAll } from '#test/e2e/lab.ts'
import { Writers, writer } from './stateful/writers.ts'

const places = ['acme/one', 'acme/two', 'beta/one', 'beta/two']
const apps = ['a', 'b', 'c', 'd', 'e']
/** As `--volume-moves-per-member` is by default. */
const perMember = 4

endLabAfterAll()

describe('the drain of a member with twenty stateful applications', function () {
  this.timeout(1_800_000)
  const stack = new AsyncDisposableStack()
  let writers: Writers

  before(async function () {
    this.timeout(30 * 60_000)
    await needsNodes(this)
    writers = stack.use(await Writers.make({ default: 'Copy', retainSeconds: 5 }))
    stack.defer(() => deleteAll(writers.installation.admin))
    for (const cluster of ['acme', 'beta']) await writers.tenant(cluster)
  })
  after(async function () {
    this.timeout(300_000)
    await stack.disposeAsync()
  })

  it('moves all of them and the volumes without a workload, and says when nothing is left', async () => {
    const { admin, flags } = writers.installation
    const memberOf = async (name: string): Promise<Member> =>
      JSON.parse((await kubectl(admin, ['get', 'membercluster', name, '-o', 'json'])).stdout) as Member
    await runKcp(['cordon', 'west', ...flags])
    for (const place of places) {
      await writers.begin(place)
      await writers.apply(
        place,
        [...apps, 'unused'].map((app) => writer(app)),
      )
    }
    for (const place of places) for (const app of [...apps, 'unused']) await writers.runs(place, app, 'east')
    // Their claims stay, as Kubernetes keeps claims of StatefulSets.
    for (const place of places) await writers.as(place, 'delete', 'statefulset', 'unused', '--wait')
    await runKcp(['uncordon', 'west', ...flags])

    const began = Date.now()
    await kubectl(admin, ['patch', 'membercluster', 'east', '--type=merge', '-p', '{"spec":{"state":"Draining"}}'])
    let most = 0
    const seen = new Set<string>()
    await waitFor(
      async () => {
        const all = (await Promise.all(['one', 'two'].map((space) => writers.moves(space)))).flat()
        for (const { status } of all)
          for (const { type, reason } of status?.conditions ?? []) if (type === 'Progressing') seen.add(reason)
        const copying = all.filter(({ status }) =>
          status?.conditions?.some(
            ({ type, reason }) => type === 'Progressing' && /^(Preparing|Copying)$/.test(reason),
          ),
        )
        most = Math.max(most, copying.length)
        const { conditions = [], remaining = [] } = (await memberOf('east')).status ?? {}
        const drained = conditions.find(({ type }) => type === 'Drained')
        if (drained?.status === 'True') return true
        throw new Error(`${JSON.stringify(drained)} ${JSON.stringify(remaining.slice(0, 5))}`)
      },
      { what: 'the member to be drained', deadlineMs: 1_500_000, intervalMs: 1000 },
    )
    process.stdout.write(
      `      drained in ${Math.round((Date.now() - began) / 1000)} s, at most ${most} copied at a time\n`,
    )
    expect(most).to.be.within(1, perMember)
    expect([...seen]).to.include('Queued')
    for (const place of places) {
      for (const app of apps) {
        await writers.runs(place, app, 'west')
        expect(await writers.check(place, `statefulset/${app}`)).to.equal(2)
      }
      const columns = String.raw`jsonpath={.metadata.annotations.kcp\.dev/volume-in}`
      expect(await writers.as(place, 'get', 'pvc', 'data-unused-0', '-o', columns)).to.equal('west')
      await writers.apply(place, [writer('unused')])
      await writers.runs(place, 'unused', 'west')
      expect(await writers.check(place, 'statefulset/unused')).to.equal(2)
    }
  })
})

interface Member {
  readonly status?: {
    readonly conditions?: readonly { readonly type: string; readonly status: string; readonly message: string }[]
    readonly remaining?: readonly object[]
  }
}
