import { expect } from 'chai'
import { LRUCache } from 'lru-cache'
import { clusterIdOf, type Revision } from '#apimachinery/meta/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import type { Read, ToldEntry } from './protocol.ts'
import { RemoteObjects, type Link } from './remote-objects.ts'

const resource = 'configmaps'

function told(name: string, at: number): ToldEntry {
  const revision = at as Revision
  const bytes = Buffer.from(
    JSON.stringify({ metadata: { name, resourceVersion: String(at) } }),
  ) as Uint8Array<ArrayBuffer>
  return { namespace: 'shop', name, revision, createRevision: 1 as Revision, base: false, bytes }
}

/** Answers lists of these objects as the main thread does: without the bytes that the worker has. */
function linkTo(objects: readonly ToldEntry[]): Link {
  const response = ({ known }: Extract<Read, { do: 'list' }>): ToldEntry[] =>
    objects.map((one) => {
      const revision = [...known].find(([key]) => key.endsWith(`/shop/${one.name}`))?.[1]
      return revision === one.revision ? { ...one, bytes: undefined } : one
    })
  return {
    read: (_, read) => (read.do === 'list' ? response(read) : undefined),
    write: () => Promise.reject(new Error('nothing is written here')),
  }
}

describe('objects on the offload thread', () => {
  it('are listed although the new ones drop known ones from the cache', () => {
    const known = new LRUCache<string, Entry>({ max: 2 })
    const at = (revision: number, names: readonly string[]): readonly Entry[] => {
      const link = linkTo(names.map((name) => told(name, name === 'old' ? 1 : revision)))
      return new RemoteObjects(clusterIdOf('a'), { link, known }).list({ resource })
    }
    at(1, ['old'])
    const names = at(2, ['new-1', 'new-2', 'old']).map(({ key }) => key.name)
    expect(names).to.deep.equal(['new-1', 'new-2', 'old'])
  })
})
