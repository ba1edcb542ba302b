// Tests a controller against a server that starts inside this process: node examples/test-a-controller.ts
import { startTestServer, type GroupVersionResource } from 'kcp/testing'

const configMaps: GroupVersionResource = { group: '', version: 'v1', resource: 'configmaps' }
const { signal } = new AbortController()

const started = performance.now()
await using server = await startTestServer()
console.log(`the server is ready after ${(performance.now() - started).toFixed(0)} ms`)

/** The controller under test: copies data.colour to a label. */
async function reconcile(name: string): Promise<void> {
  const found = await server.client.get(configMaps, { namespace: 'default', name }, { signal })
  const { colour = '' } = found['data'] as { colour?: string }
  const labels = { metadata: { labels: { colour } } }
  await server.client.patch(configMaps, { namespace: 'default', name }, 'merge', labels, { signal })
}

const metadata = { name: 'paint', namespace: 'default' }
await server.client.create(
  configMaps,
  { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { colour: 'red' } },
  { signal },
)
await reconcile('paint')
const { items } = await server.client.list(configMaps, { labelSelector: 'colour=red', signal })
if (items.length !== 1) throw new Error('the label is missing')
console.log('the controller works')
