// Follows the ConfigMaps of a server that starts inside this process: node examples/follow-config-maps.ts
import { createClient, createInformer, createLogger, httpTransport, loadKubeconfig } from 'kcp/client'
import { startTestServer } from 'kcp/testing'

const { signal } = new AbortController()
const configMaps = { group: '', version: 'v1', resource: 'configmaps' }
await using server = await startTestServer()
await using transport = httpTransport(await loadKubeconfig({ text: server.kubeconfig }, { trusted: true }))
const client = createClient(transport)
await using informer = createInformer({ client, gvr: configMaps, namespace: 'default', log: createLogger(), signal })
await informer.synced(signal)

const seen = Promise.withResolvers<undefined>()
informer.onChange(({ before, after }) => {
  console.log(before === undefined ? 'added' : after === undefined ? 'deleted' : 'changed', after?.metadata.name ?? '')
  if (after?.metadata.labels?.['colour'] === 'red') seen.resolve(undefined)
})
const metadata = { name: 'paint', namespace: 'default' }
await client.create(configMaps, { apiVersion: 'v1', kind: 'ConfigMap', metadata }, { signal })
await client.patch(configMaps, metadata, 'merge', { metadata: { labels: { colour: 'red' } } }, { signal })
await seen.promise
