// StatefulSets of several pods that move pod by pod with their volumes between two real members whose pods reach each
// other: one pod at a time is missing, each goes on with its own data, and the move can be taken back in the middle.
import { expect } from 'chai'
import { needsNodes, waitFor } from '#test/support/index.ts'
import { deleteAll } from '#test/e2e/delete-all.ts'
import { endLabAfterAll } from '#test/e2e/lab.ts'
import { Writers, writer } from './stateful/writers.ts'

const replicas = 3

endLabAfterAll()

describe('a StatefulSet with volumes that moves pod by pod', function () {
  this.timeout(600_000)
  const stack = new AsyncDisposableStack()
  let writers: Writers

  before(async function () {
    this.timeout(30 * 60_000)
    await needsNodes(this)
    writers = stack.use(await Writers.make({ default: 'Copy', retainSeconds: 5 }))
    stack.defer(() => deleteAll(writers.installation.admin))
    await writers.tenant('acme')
  })
  after(async function () {
    this.timeout(180_000)
    await stack.disposeAsync()
  })

  /** The members of the ready pods, by ordinal; undefined: the pod is not ready. */
  const look = async (place: string): Promise<(string | undefined)[]> => {
    const { items } = JSON.parse(await writers.as(place, 'get', 'pods', '-l', 'app=w', '-o', 'json')) as {
      items: Pod[]
    }
    expect(new Set(items.map(({ metadata }) => metadata.name)).size, 'a pod is shown twice').to.equal(items.length)
    return Array.from({ length: replicas }, (_, ordinal) => {
      const pod = items.find(({ metadata }) => metadata.name === `w-${ordinal}`)
      const isReady =
        pod?.metadata.deletionTimestamp === undefined && pod?.status?.containerStatuses?.[0]?.ready === true
      return isReady ? pod.metadata.annotations?.['kcp.dev/member'] : undefined
    })
  }
  const all = (member: string): string[] => Array.from({ length: replicas }, () => member)
  const untilAll = (place: string, member: string): Promise<unknown> =>
    waitFor(async () => JSON.stringify(await look(place)) === JSON.stringify(all(member)), {
      ...{ what: `all pods to be ready in ${member}`, deadlineMs: 240_000, intervalMs: 500 },
    })
  const ask = (place: string, member: string): Promise<string> =>
    writers.as(place, 'annotate', '--overwrite', 'statefulset/w', `kcp.dev/clusters=${member}`)
  const begin = async (space: string, retention?: object): Promise<string> => {
    const place = `acme/${space}`
    await writers.begin(place, 'east')
    await writers.apply(place, [writer('w', { replicas, ...(retention && { retention }) })])
    await untilAll(place, 'east')
    return place
  }
  /** How often each pod has started. Checks that no number is missing and none was written twice. */
  const starts = (place: string): Promise<number[]> =>
    Promise.all(all('').map((_, ordinal) => writers.check(place, `w-${ordinal}`)))

  it('has one pod at most that is missing, also if its claims would go with its pods', async () => {
    const place = await begin('order', { whenDeleted: 'Delete', whenScaled: 'Delete' })
    const began = Date.now()
    const missing = all('').map(() => 0)
    let [before, most] = [Date.now(), 0]
    await ask(place, 'west')
    await waitFor(
      async () => {
        const now = await look(place)
        const away = now.flatMap((member, ordinal) => (member === undefined ? [ordinal] : []))
        for (const ordinal of away) missing[ordinal] = (missing[ordinal] ?? 0) + Date.now() - before
        before = Date.now()
        most = Math.max(most, away.length)
        if (now.every((member) => member === 'west')) return true
        throw new Error(JSON.stringify({ now, moves: (await writers.moves('order')).map(({ status }) => status) }))
      },
      { what: 'all pods to be in west', deadlineMs: 300_000, intervalMs: 300 },
    )
    const seconds = missing.map((ms) => Math.round(ms / 1000)).join(', ')
    process.stdout.write(
      `      moved in ${Math.round((Date.now() - began) / 1000)} s; without each pod: ${seconds} s\n`,
    )
    expect(most, 'pods that were missing at a time').to.equal(1)
    expect(await starts(place)).to.deep.equal([2, 2, 2])
    const policy = 'jsonpath={.spec.persistentVolumeClaimRetentionPolicy.whenScaled}'
    const west = await writers.namespaceBelow('acme', 'order')
    await waitFor(
      async () => (await writers.lab.west.kubectl(['get', 'sts', 'w', '-n', west, '-o', policy])).stdout === 'Delete',
      { what: 'the claims to go with pods again', deadlineMs: 60_000 },
    )
  })

  it('comes back with all data if that is asked for in the middle', async () => {
    const place = await begin('back')
    await ask(place, 'west')
    await waitFor(async () => (await look(place))[replicas - 1] === 'west', {
      ...{ what: 'the last pod to be in west', deadlineMs: 180_000, intervalMs: 300 },
    })
    await ask(place, 'east')
    await untilAll(place, 'east')
    const counts = await starts(place)
    expect(counts[replicas - 1]).to.equal(3)
    expect(counts.slice(0, -1).every((count) => count <= 3)).to.equal(true)
    await waitFor(async () => (await writers.moves('back')).length === 0, {
      ...{ what: 'the moves to be over', deadlineMs: 90_000 },
    })
  })

  it('takes a claim along whose pod the StatefulSet does not have at present', async () => {
    const place = await begin('fewer')
    await writers.as(place, 'scale', 'statefulset/w', `--replicas=${replicas - 1}`)
    await waitFor(async () => (await look(place))[replicas - 1] === undefined, {
      ...{ what: 'the last pod to be gone', deadlineMs: 60_000 },
    })
    await ask(place, 'west')
    const column = String.raw`jsonpath={.metadata.annotations.kcp\.dev/volume-in}`
    await waitFor(
      async () => (await writers.as(place, 'get', 'pvc', `data-w-${replicas - 1}`, '-o', column)) === 'west',
      {
        ...{ what: 'the claim without a pod to be in west', deadlineMs: 240_000, intervalMs: 1000 },
      },
    )
    await writers.as(place, 'scale', 'statefulset/w', `--replicas=${replicas}`)
    await untilAll(place, 'west')
    expect(await starts(place)).to.deep.equal([2, 2, 2])
  })
})

interface Pod {
  readonly metadata: {
    readonly name: string
    readonly deletionTimestamp?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly status?: { readonly containerStatuses?: readonly { readonly ready?: boolean }[] }
}
