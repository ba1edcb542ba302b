import { expect } from 'chai'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { createMetrics } from '#telemetry/index.ts'
import { measuredStore } from './measured-store.ts'
import { openSqliteStore } from '#store/sqlite/index.ts'

describe('a measured store', () => {
  it('counts operations by how they end', async () => {
    await using stack = new AsyncDisposableStack()
    const dir = mkdtempSync(join(tmpdir(), 'kcp-measured-'))
    stack.defer(() => rmSync(dir, { recursive: true, force: true }))
    const metrics = createMetrics()
    const inner = await openSqliteStore({ file: join(dir, 'store.db') })
    const store = stack.use(measuredStore(inner, { name: 'sqlite', metrics }))
    const { signal } = new AbortController()
    const key = { cluster: 'c' as ClusterId, resource: 'configmaps', namespace: 'shop', name: 'a' }
    const value = Buffer.from('{}')
    const made = await store.create(key, value, { signal })
    expect((await store.get(key, { signal }))?.revision).to.equal(made.revision)
    const refused = await store.create(key, value, { signal }).catch((error: unknown) => error)
    expect(refused).to.have.property('code', 'KeyExists')

    const { body } = await metrics.scrape()
    const counts = [...body.matchAll(/^kcp_store_operation_duration_seconds_count\{(.*)\} (\d+)$/gm)]
    expect(counts.map(([, labels, count]) => `${labels ?? ''} ${count ?? ''}`)).to.have.members([
      'store="sqlite",operation="create",outcome="ok" 1',
      'store="sqlite",operation="get",outcome="ok" 1',
      'store="sqlite",operation="create",outcome="KeyExists" 1',
    ])
  })
})
