// What stores in a server of the user's have in common: one place there belongs to one installation, and its newest
// process writes.
import { randomBytes } from 'node:crypto'
import { expect } from 'chai'
import { Seal, type ObjectKey, type Store } from '#store/index.ts'
import { freshCluster, refused, valueOf } from './store.ts'

export interface SharedPlace {
  /** Opens the store at a place, such as a prefix. Default owner and seal are the same for all. */
  readonly open: (place: string, options?: { readonly owner?: string; readonly seal?: Seal }) => Promise<Store>
  readonly freshPlace: () => string
  /** Everything that the server holds at the place, as text. */
  readonly raw: (place: string) => Promise<string>
  /** Makes a place that somebody else uses for something else. */
  readonly spoil: (place: string) => Promise<void>
}

const { signal } = new AbortController()
const key = (name: string, resource = 'configmaps', cluster = freshCluster()): ObjectKey => ({
  ...{ cluster, resource, namespace: 'shop', name },
})

export function describeSharedPlace({ open, freshPlace, raw, spoil }: SharedPlace): void {
  const messageOf = async (opening: Promise<Store>): Promise<string> =>
    await opening.then(
      async (store) => {
        await store[Symbol.asyncDispose]()
        return 'it was opened'
      },
      (error: unknown) => (error as Error).message,
    )

  it('are written by the newest process of their installation only', async () => {
    const place = freshPlace()
    const at = key('a')
    await using old = await open(place)
    const made = await old.create(at, valueOf('a'), { signal })
    await using next = await open(place)
    expect(next.instanceId).to.equal(old.instanceId)
    await refused(old.update(at, valueOf('a', 1), { signal, ifRevision: made.revision }), 'Unavailable')
    const events = old.watch({ since: made.revision, signal })[Symbol.asyncIterator]()
    await refused(events.next() as Promise<unknown>, 'Unavailable')
    await next.update(at, valueOf('a', 2), { signal, ifRevision: made.revision })
  })

  it('are refused to another installation, with another key, and at a place with foreign data', async () => {
    const place = freshPlace()
    await (await open(place))[Symbol.asyncDispose]()
    expect(await messageOf(open(place, { owner: 'other' }))).to.match(/holds the data of test/)
    expect(await messageOf(open(place, { seal: new Seal(randomBytes(32)) }))).to.match(/sealed with another key/)
    const foreign = freshPlace()
    await spoil(foreign)
    expect(await messageOf(open(foreign))).to.match(/was not (written|made) by kcp/)
  })

  it('hold Secrets sealed', async () => {
    const place = freshPlace()
    await using store = await open(place)
    const cluster = freshCluster()
    const hidden = Buffer.from('{"data":{"word":"c2VzYW1l"}}')
    await store.create(key('shown', 'configmaps', cluster), Buffer.from('{"data":{"word":"plain"}}'), { signal })
    await store.create(key('s', 'secrets', cluster), hidden, { signal })
    await store.create(key('other', 'secrets', cluster), hidden, { signal })
    expect(await raw(place))
      .to.contain('plain')
      .and.contain('sealed:')
      .and.not.contain('c2VzYW1l')
    const { items } = await store.list({ cluster, resource: 'secrets' }, { signal })
    expect(items.map(({ value }) => Buffer.from(value).toString())).to.deep.equal([String(hidden), String(hidden)])
  })

  it('have the order of UTF-16 in lists and pages', async () => {
    await using store = await open(freshPlace())
    const cluster = freshCluster()
    const names = ['a', 'a-b', 'a.b', 'ab', 'é', '\ue000', '\uffee', '\u{1f600}', 'z', 'Ω', 'a\u{10000}', 'a\uff00']
    for (const name of names) await store.create(key(name, 'roles.rbac', cluster), valueOf('x'), { signal })
    const found: string[] = []
    let after: ObjectKey | undefined
    do {
      const page = await store.list({ cluster }, { signal, limit: 5, ...(after && { after }) })
      found.push(...page.items.map((item) => item.key.name))
      after = page.next
    } while (after !== undefined)
    expect(found).to.deep.equal([...names].sort((a, b) => (a < b ? -1 : 1)))
  })
}
