// spec.limits while several replicas serve: 32 clients through all of them, an owner that is killed meanwhile, and logical
// clusters of one limit that have different owners. docs/how-to/limit-and-bill-tenants.md says which limits are exact.
import { expect } from 'chai'
import { setTimeout as delay } from 'node:timers/promises'
import { itInLongRun, kubectl, waitFor } from '#test/support/index.ts'
import { openRawClient, type RawClient, type RawResponse } from './raw-client.ts'
import { startReplicas, type ReplicaSet, type RunningReplica } from './replicas.ts'

const clients = 32
const within = { deadlineMs: 90_000, intervalMs: 200 }
const maps = '/api/v1/namespaces/default/configmaps'

describe('limits of logical clusters over replicas', function () {
  this.timeout(300_000)
  const stack = new AsyncDisposableStack()
  let set: ReplicaSet
  /** Not in a tree. */
  let solo: string
  /** `child` shares the limits of `parent`, and has another owner. */
  let parent: string
  let child: string
  /** Clients of each logical cluster, one through each replica. */
  const through = new Map<string, RawClient[]>()

  before(async () => {
    set = stack.use(await startReplicas(3, { name: 'limits' }))
    const owners = new Map<RunningReplica, string>()
    for (const name of ['n-a', 'n-b', 'n-c', 'n-d', 'n-e', 'n-f']) {
      await set.create(name)
      await waitFor(async () => (await set.ownerOf(name).catch(() => undefined)) !== undefined, {
        what: `an owner of ${name}`,
        ...within,
      })
      const owner = await set.ownerOf(name)
      if (!owners.has(owner)) owners.set(owner, name)
    }
    ;[parent = '', child = ''] = owners.values()
    expect(child, 'two logical clusters with different owners').not.to.equal('')
    solo = ['n-a', 'n-b', 'n-c'].find((name) => name !== parent && name !== child) ?? ''
    for (const name of [solo, parent, child]) {
      const opened: RawClient[] = []
      for (const replica of set.replicas) {
        const kubeconfig = await set.kubeconfig(name, replica)
        opened.push(stack.use(openRawClient({ kubeconfig, host: replica.address })))
      }
      through.set(name, opened)
    }
    await change(child, { parentRef: { name: parent } })
  })
  after(() => stack.disposeAsync())

  const change = async (name: string, spec: object): Promise<void> => {
    await kubectl(set.host.kubeconfig, ['patch', 'lc', name, '--type=merge', '-p', JSON.stringify({ spec })])
  }
  /** A request through one of the replicas, or the next one if that does not answer; undefined if none does. */
  const ask = async (name: string, client: number, method: string, path: string, body?: object) => {
    for (let at = client; at < client + 3; at++) {
      const options = body === undefined ? {} : { body }
      const answer = await through
        .get(name)
        ?.[at % 3]?.request(method, `/clusters/${name}${path}`, options)
        .catch(() => undefined)
      if (answer !== undefined) return answer
    }
    return undefined
  }
  const make = (name: string, client: number, object: string): Promise<RawResponse | undefined> =>
    ask(name, client, 'POST', maps, { metadata: { name: object } })
  const isRefused = (answer: RawResponse | undefined): boolean =>
    answer?.status === 403 && answer.text.includes('exceeded quota: objects of logical cluster')
  const usedIn = (answer: RawResponse | undefined): number =>
    Number(/used: objects=(\d+)/.exec(answer?.text ?? '')?.[1])
  /** Names of the ConfigMaps that this test has made. */
  const madeIn = async (name: string): Promise<string[]> => {
    let items: { metadata: { name: string } }[] = []
    const isListed = async (): Promise<boolean> => {
      const answer = await ask(name, 1, 'GET', maps)
      if (answer?.status !== 200) return false
      items = (answer.json() as { items: typeof items }).items
      return true
    }
    await waitFor(isListed, { what: `a list of ${name}`, ...within })
    return items.map(({ metadata }) => metadata.name).filter((one) => one.startsWith('c-'))
  }
  /** All clients create until they are refused by the limit; a failure is tried again. Resolves with the last refusal. */
  const fill = async (names: readonly string[], round: string, acknowledged = (): void => undefined) => {
    let last: RawResponse | undefined
    const run = async (client: number): Promise<void> => {
      const name = names[client % names.length] ?? ''
      const deadline = performance.now() + within.deadlineMs
      for (let object = 0; performance.now() < deadline;) {
        const answer = await make(name, client, `c-${round}-${client}-${object}`)
        if (isRefused(answer)) {
          last = answer
          return
        }
        if (answer?.status === 201) acknowledged()
        // An attempt without an answer may have been stored.
        if (answer?.status === 201 || answer?.status === 409) object++
        else await delay(100)
      }
      throw new Error('no limit was enforced')
    }
    await Promise.all(Array.from({ length: clients }, (_, client) => run(client)))
    return last
  }
  /** Sets a limit on objects and resolves when the owners of these logical clusters know it. */
  const limitObjects = async (of: string, names: readonly string[], objects: number): Promise<void> => {
    await change(of, { limits: { objects: 1 } })
    for (const name of names)
      await waitFor(async () => isRefused(await make(name, 0, `first-${Math.random().toString(36).slice(2)}`)), {
        what: `${name} to be limited`,
        ...within,
      })
    await change(of, { limits: { objects } })
    for (const name of names)
      await waitFor(async () => (await make(name, 0, `c-probe-${objects}`))?.status === 201, {
        what: `room in ${name}`,
        ...within,
      })
  }
  /** Objects that a logical cluster has besides those of `madeIn`: the limit counts them, too. */
  let others = 0

  it('are exact for one logical cluster, whichever replica a client asks', async () => {
    await limitObjects(solo, [solo], 150)
    expect(usedIn(await fill([solo], 'a'))).to.equal(150)
    const made = await madeIn(solo)
    others = 150 - made.length
    expect(others, 'what else is in it').to.be.within(0, 10)
    for (let client = 0; client < 6; client++) expect(isRefused(await make(solo, client, 'c-more'))).to.equal(true)
    expect((await ask(solo, 2, 'DELETE', `${maps}/${made[0] ?? ''}`))?.status).to.equal(200)
    expect((await make(solo, 1, 'c-in-its-place'))?.status).to.equal(201)
    expect(isRefused(await make(solo, 0, 'c-more'))).to.equal(true)
    expect((await madeIn(solo)).length + others).to.equal(150)
  })

  itInLongRun('stay exact while another replica takes over from one that was killed under writes', async () => {
    await change(solo, { limits: { objects: 1500 } })
    await waitFor(async () => (await make(solo, 0, 'c-raised'))?.status === 201, { what: 'the new limit', ...within })
    const owner = await set.ownerOf(solo)
    let acknowledged = 0
    let killed: Promise<unknown> | undefined
    try {
      const last = await fill([solo], 'b', () => {
        if (++acknowledged === 100) killed = owner.process.kill()
      })
      await killed
      expect(killed, 'the owner was killed under writes').not.to.equal(undefined)
      expect(usedIn(last)).to.equal(1500)
      expect((await madeIn(solo)).length + others, 'a recount').to.equal(1500)
      expect(await set.ownerOf(solo), 'another owner').not.to.equal(owner)
    } finally {
      await killed
      await owner.process.start()
    }
  })

  it('on objects of logical clusters with different owners are seen by all owners, and hold from then on', async () => {
    await waitFor(async () => (await set.ownerOf(parent)) !== (await set.ownerOf(child)), {
      what: 'different owners after the restart',
      ...within,
    })
    const limit = 400
    await limitObjects(parent, [parent, child], limit)
    await fill([parent, child], 'd')
    // An owner may see the last writes of another a moment later, and lets through what was sent meanwhile.
    let round = 0
    const allRefuse = async (): Promise<boolean> => {
      round++
      const answers = await Promise.all([parent, child].map((name) => make(name, 0, `c-e-${round}`)))
      return answers.every(isRefused)
    }
    await waitFor(allRefuse, { what: 'both owners to refuse', ...within })
    const total = async (): Promise<number> => (await madeIn(parent)).length + (await madeIn(child)).length
    const full = await total()
    expect(full, 'never less than the limit, but for what else is there').to.be.at.least(limit - 20)
    for (let client = 0; client < 2 * clients; client++)
      expect(isRefused(await make(client % 2 === 0 ? parent : child, client, `c-f-${client}`))).to.equal(true)
    expect(await total(), 'not one more').to.equal(full)
    await change(parent, { limits: { objects: null } })
  })

  itInLongRun('on watches are divided among owners, and together never exceeded', async () => {
    const limit = 30
    const open: AsyncDisposable[] = []
    const watch = async (name: string, client: number): Promise<number> => {
      const watching = await through.get(name)?.[client % 3]?.watch(`/clusters/${name}${maps}?watch=1`)
      if (watching?.status === 200) open.push(watching)
      else await watching?.[Symbol.asyncDispose]()
      return watching?.status ?? 0
    }
    const closeAll = async (): Promise<void> => {
      for (const one of open.splice(0)) await one[Symbol.asyncDispose]()
    }
    await change(parent, { limits: { watches: 1 } })
    for (const name of [parent, child])
      await waitFor(async () => (await watch(name, 0)) === 429, { what: `a refusal in ${name}`, ...within })
    await closeAll()
    await change(parent, { limits: { watches: limit } })
    for (const name of [parent, child])
      await waitFor(async () => (await watch(name, 0)) === 200, { what: `room in ${name}`, ...within })
    await closeAll()
    const run = async (client: number): Promise<void> => {
      for (let round = 0; round < 8; round++) {
        const status = await watch(client % 2 === 0 ? parent : child, client)
        expect(open.length, 'never one too many').to.be.at.most(limit)
        if (status === 429) await delay(20)
      }
    }
    await Promise.all(Array.from({ length: clients }, (_, client) => run(client)))
    expect(open.length, 'each owner has half of them').to.equal(limit)
    await closeAll()
    await change(parent, { limits: { watches: null } })
  })
})
