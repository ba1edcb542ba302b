import { Buffer } from 'node:buffer'
import { expect } from 'chai'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { sleep } from '#async/index.ts'
import { EntryMemory, type Packing } from './entry-memory.ts'
import { StoredEntry } from './stored-entry.ts'

/** Halves texts that consist of two equal halves. */
const halving: Packing = {
  pack: (bytes) => {
    const text = Buffer.from(bytes).toString()
    const half = text.slice(0, text.length / 2)
    return half + half === text ? Buffer.from(half) : bytes
  },
  unpack: (bytes, size) => Buffer.alloc(size, Buffer.from(bytes)),
}

const revision = 1 as Revision
const key = { cluster: 'a' as ClusterId, resource: 'things', namespace: '', name: 'a' }

function entryOf(text: string): StoredEntry {
  const facts = { uid: 'u', labels: undefined, ownerUids: [], blockedUids: [] }
  const bytes = Buffer.from(text)
  return new StoredEntry({ key, revision, createRevision: revision, bytes, base: false }, () => facts)
}

const isPacked = ({ beginning, size }: StoredEntry): boolean => beginning.length < size
const textOf = ({ bytes }: StoredEntry): string => Buffer.from(bytes).toString()
async function untilPacked(entry: StoredEntry): Promise<void> {
  const { signal } = new AbortController()
  for (let i = 0; i < 2000 && !isPacked(entry); i++) await sleep(5, signal)
  expect(isPacked(entry)).to.equal(true)
}

describe('the memory of entries', () => {
  let memory: EntryMemory
  const open = (options: { maxWholeBytes?: number; idleMs?: number }): void => {
    memory = new EntryMemory({ ...halving, ...options })
  }
  const added = (text: string): StoredEntry => {
    const entry = entryOf(text)
    entry.packIn(memory)
    return entry
  }
  afterEach(() => memory[Symbol.dispose]())

  it('packs an entry that nobody reads, and shows its bytes all the same', async () => {
    open({ idleMs: 40 })
    const entry = added('abab')
    expect(isPacked(entry)).to.equal(false)
    await untilPacked(entry)
    expect(textOf(entry)).to.equal('abab')
    expect(entry.size).to.equal(4)
  })

  it('keeps an entry whole that is read again soon, and packs it later', async () => {
    open({ idleMs: 1000 })
    const entry = added('abab')
    entry.pack()
    expect(isPacked(entry)).to.equal(true)
    textOf(entry)
    textOf(entry)
    expect(isPacked(entry)).to.equal(false)
    await untilPacked(entry)
  })

  it('packs at once what exceeds the limit, however often it is read', () => {
    open({ maxWholeBytes: 10 })
    const [first, second] = [added('abcabc'), added('xyzxyz')]
    expect([first, second].map(isPacked)).to.deep.equal([false, true])
    for (let i = 0; i < 3; i++) expect(textOf(second)).to.equal('xyzxyz')
    expect(isPacked(second)).to.equal(true)
  })

  it('leaves alone what can not be packed, and what was replaced', async () => {
    open({ idleMs: 40 })
    const [odd, replaced, last] = [added('abc'), added('abab'), added('cdcd')]
    replaced.leave()
    await untilPacked(last)
    expect([odd, replaced].map(isPacked)).to.deep.equal([false, false])
    expect([odd, replaced].map(textOf)).to.deep.equal(['abc', 'abab'])
  })
})
