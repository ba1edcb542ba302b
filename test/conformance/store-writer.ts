// A process that writes to an embedded store until it is killed: `node store-writer.ts FILE CLUSTER ROUND`. Says on
// standard output what was acknowledged, one line each, before it goes on with that object. Standard output is a file:
// its writes block, and they survive the end of the process. A pipe may be set to non-blocking, and full.
import { writeSync } from 'node:fs'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'

const [file = '', cluster = '', round = ''] = process.argv.slice(2)
const { signal } = new AbortController()
const writers = 16

/** The value that step number `n` of an object writes: every fifth step deletes it. */
function valueOf(name: string, n: number): Buffer {
  return Buffer.from(JSON.stringify({ name, n, padding: String(n % 10).repeat(200 + (n % 7) * 700) }))
}

const store = await openSqliteStore({ file })
writeSync(1, `ready ${await store.revision({ signal })}\n`)
await Promise.all(
  Array.from({ length: writers }, async (_, w) => {
    const key = { cluster: cluster as ClusterId, resource: 'configmaps', namespace: `round${round}`, name: `w${w}` }
    let last: Revision | undefined
    for (let n = 0; ; n++) {
      if (last === undefined) last = (await store.create(key, valueOf(key.name, n), { signal })).revision
      else if (n % 5 !== 4) {
        last = (await store.update(key, valueOf(key.name, n), { signal, ifRevision: last })).revision
      } else {
        const revision = await store.delete(key, { signal, ifRevision: last })
        writeSync(1, `${key.name} ${n} ${revision}\n`)
        last = undefined
        continue
      }
      writeSync(1, `${key.name} ${n} ${last}\n`)
    }
  }),
)
