import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { alreadyExists, conflict, notFound, serviceUnavailable } from '#apimachinery/status/index.ts'
import type { DeleteOptions, KubeClient, ListOptions, ObjectRef } from '#client/index.ts'
import { hourMs, hourOf, mergeUsageRows, newUsageRow, UsageBook } from '#crds/index.ts'
import { openUsageHistory, usageRowsSince } from './usage-history.ts'

const kind = { group: '', resource: 'configmaps' }
const { signal } = new AbortController()

/** ConfigMaps in memory, with the verbs that the history uses. `failing` is called before each of them. */
class Maps {
  readonly byName = new Map<string, KubeObject & { binaryData?: Record<string, string> }>()
  #revision = 0
  failing: (verb: string, name: string) => unknown = () => undefined
  lists: number[] = []

  readonly client = {
    tryGet: (_: unknown, { name }: ObjectRef) => this.#answer('get', name, () => this.byName.get(name)),
    list: (_: unknown, options: ListOptions) => this.#answer('list', '', () => this.#list(options)),
    create: (_: unknown, object: KubeObject) =>
      this.#answer('create', object.metadata.name ?? '', () => {
        const { name = '' } = object.metadata
        if (this.byName.has(name)) throw alreadyExists(kind, name)
        this.#put(name, object)
        return object
      }),
    patch: (_: unknown, { name }: ObjectRef, _type: string, patch: object) =>
      this.#answer('patch', name, () => {
        const now = this.byName.get(name)
        if (now === undefined) throw notFound(kind, name)
        this.#put(name, { ...now, ...patch })
        return now
      }),
    delete: (_: unknown, { name }: ObjectRef, { resourceVersion }: DeleteOptions) =>
      this.#answer('delete', name, () => {
        const now = this.byName.get(name)
        if (now === undefined) throw notFound(kind, name)
        if (resourceVersion !== undefined && resourceVersion !== now.metadata.resourceVersion)
          throw conflict(kind, name, 'it has changed')
        this.byName.delete(name)
      }),
  } as unknown as KubeClient

  async #answer<T>(verb: string, name: string, act: () => T): Promise<T> {
    await new Promise(setImmediate)
    await this.failing(verb, name)
    return act()
  }

  #put(name: string, object: KubeObject): void {
    const resourceVersion = String(++this.#revision)
    this.byName.set(name, { ...object, metadata: { ...object.metadata, uid: name, resourceVersion } })
  }

  #list({ labelSelector = '', limit = Infinity, continue: page = '', metadataOnly = false }: ListOptions) {
    const [, equals] = labelSelector.split('=')
    const [, among] = /in \((.*)\)/.exec(labelSelector) ?? []
    const hours = equals === undefined ? among?.split(',') : [equals]
    const all = [...this.byName.values()]
      .filter(({ metadata }) => hours?.includes(metadata.labels?.['kcp.dev/usage-hour'] ?? '') ?? true)
      .filter(({ metadata }) => (metadata.name ?? '') > page)
      .sort((a, b) => ((a.metadata.name ?? '') < (b.metadata.name ?? '') ? -1 : 1))
    const items = all.slice(0, limit).map(({ binaryData, ...rest }) => ({
      ...rest,
      ...(!metadataOnly && binaryData && { binaryData }),
    }))
    this.lists.push(items.length)
    const last = items.at(-1)?.metadata.name
    return { items, metadata: all.length > items.length ? { continue: last } : {} }
  }

  /** The names of all, without what they have in common. */
  names(): string[] {
    return [...this.byName.keys()].map((name) => name.replace(/^kcp-usage-/, '').replace(/\d{10}/, 'HOUR')).sort()
  }
}

describe('the history of usage', () => {
  const start = Date.parse(hourOf(Date.now())) - 5 * hourMs
  const [first, third] = [hourOf(start), hourOf(start + 2 * hourMs)]
  const writers = ['w1', 'w2', 'w3']
  const of = (maps: Maps, writer: string) => openUsageHistory({ client: maps.client, writer })
  const row = (hour: string, id: string, requests: number) => ({ ...newUsageRow({ hour, id, name: id }), requests })

  /** Each writer has a row of its own and one of `all` in the first hour. */
  const begun = async (): Promise<Maps> => {
    const maps = new Maps()
    for (const writer of writers)
      await of(maps, writer).save(first, [row(first, writer, 1), row(first, 'all', 10)], signal)
    return maps
  }
  const requests = async (maps: Maps): Promise<Record<string, number>> => {
    const rows = mergeUsageRows(await usageRowsSince(maps.client, first, signal)).filter(({ hour }) => hour === first)
    return Object.fromEntries(rows.map(({ id, requests }) => [id, requests]))
  }
  const whole = { w1: 1, w2: 1, w3: 1, all: 30 }
  const later = (maps: Maps, writer = 'w1') => of(maps, writer).save(third, [row(third, writer, 7)], signal)

  it('is one ConfigMap for an hour that is over, with the same rows', async () => {
    const maps = await begun()
    await later(maps)
    expect(maps.names()).to.deep.equal(['HOUR-w1-0', 'all-HOUR-0'])
    expect(await requests(maps)).to.deep.equal(whole)
    const some = await of(maps, 'w1').of(new Set(['w2', 'all']), first, signal)
    expect(some.map(({ id, requests }) => [id, requests]).sort()).to.deep.equal([
      ['all', 10],
      ['all', 10],
      ['all', 10],
      ['w2', 1],
    ])
  })

  it('neither loses nor doubles rows when a process ends at any step, nor after the next one goes on', async () => {
    let steps = 0
    for (let step = 1; ; step++) {
      const maps = await begun()
      let calls = 0
      maps.failing = () => {
        if (++calls === step) throw serviceUnavailable('killed')
      }
      const isWhole = await later(maps).then(
        () => true,
        () => false,
      )
      maps.failing = () => undefined
      expect(await requests(maps), `ended at step ${step}`).to.deep.equal(whole)
      await later(maps, 'w2')
      expect(await requests(maps), `ended at step ${step}, and went on`).to.deep.equal(whole)
      if (isWhole) break
      steps++
    }
    expect(steps).to.be.greaterThan(8)
  })

  it('neither loses nor doubles rows when all processes archive at once', async () => {
    const maps = await begun()
    const seen: Promise<Record<string, number>>[] = []
    maps.failing = (verb) => {
      if (verb === 'delete') seen.push(requests(maps))
    }
    await Promise.all(writers.map((writer) => later(maps, writer)))
    expect(maps.names().filter((name) => name.startsWith('all'))).to.deep.equal(['all-HOUR-0'])
    for (const each of await Promise.all(seen)) expect(each).to.deep.equal(whole)
    expect(await requests(maps)).to.deep.equal(whole)
  })

  it('has the last rows of a writer that is late, before and after the hour is archived', async () => {
    const maps = await begun()
    // It saves after the archive has a copy, and before its ConfigMap is deleted.
    const late = of(maps, 'w2')
    let isLate = true
    maps.failing = async (verb) => {
      if (verb !== 'delete' || !isLate) return
      isLate = false
      await late.save(first, [row(first, 'w2', 5), row(first, 'all', 12)], signal)
    }
    await later(maps)
    expect(maps.names(), 'the late rows stay').to.deep.equal(['HOUR-w1-0', 'HOUR-w2-0', 'all-HOUR-0'])
    expect(await requests(maps)).to.deep.equal({ ...whole, w2: 5, all: 32 })
    await of(maps, 'w3').save(first, [row(first, 'w3', 6), row(first, 'all', 10)], signal)
    expect(await requests(maps)).to.deep.equal({ ...whole, w2: 5, w3: 6, all: 32 })
    // A writer that opens the hour again goes on with what the archive has.
    const book = new UsageBook(of(maps, 'w1'))
    await book.open(start, signal)
    book.add({ id: 'w1', name: 'w1', requests: 2 })
    await book.save(signal)
    expect(await requests(maps)).to.deep.equal({ w1: 3, w2: 5, w3: 6, all: 32 })
    await later(maps, 'w3')
    expect(await requests(maps), 'archived again').to.deep.equal({ w1: 3, w2: 5, w3: 6, all: 32 })
    expect(maps.names().filter((name) => name.startsWith('all'))).to.deep.equal(['all-HOUR-0', 'all-HOUR-1'])
    await of(maps, 'w1').save(first, [row(first, 'w1', 4), row(first, 'all', 10)], signal)
    expect(await requests(maps), 'late once more').to.deep.equal({ w1: 4, w2: 5, w3: 6, all: 32 })
  })

  it('reads no more than 20 ConfigMaps at once for a few logical clusters', async () => {
    const maps = new Maps()
    const hour = hourOf(Date.now())
    for (let i = 0; i < 45; i++) await of(maps, `w${i}`).save(hour, [row(hour, 'a', 1), row(hour, `b${i}`, 1)], signal)
    maps.lists = []
    const rows = await of(maps, 'w0').of(new Set(['a']), hour, signal)
    expect([rows.length, rows.every(({ id }) => id === 'a')]).to.deep.equal([45, true])
    expect(maps.lists).to.deep.equal([20, 20, 5])
  })
})
