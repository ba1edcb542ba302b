import { expect } from 'chai'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { snapshot } from './snapshot.ts'

describe('objects that are put while a logical cluster is filled', () => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'one', namespace: 'default', uid: 'u' } }
  const body = { objects: [{ resource: 'configmaps', object }], whileFilling: true }
  const cluster = { id: 'c1', name: 'acme', filling: 'it is restored' } as unknown as LogicalCluster
  const exchange = {
    info: { method: 'POST' },
    user: { realm: { kind: 'installation' } },
    signal: new AbortController().signal,
    request: { body: () => Promise.resolve(Buffer.from(JSON.stringify(body))) },
  } as unknown as Exchange

  /** Puts the object; `meanwhile` is called while the kinds are loaded. Returns what was written. */
  const put = async (meanwhile: (clusters: Map<string, LogicalCluster>) => void): Promise<unknown[]> => {
    const written: unknown[] = []
    const clusters = new Map<string, LogicalCluster>([[cluster.id, cluster]])
    const objects = { get: () => undefined, create: (key: unknown) => Promise.resolve(written.push(key)) }
    const dependencies = {
      watchCache: { cluster: () => Promise.resolve(objects) },
      catalog: {
        load: () => {
          meanwhile(clusters)
          return Promise.resolve()
        },
      },
      directory: { byId: (id: string) => clusters.get(id) },
    } as unknown as EndpointDependencies
    await snapshot(exchange, cluster, dependencies).catch((error: unknown) => written.push(String(error)))
    return written
  }

  it('are written', async () => {
    expect(await put(() => undefined)).to.deep.equal([{ resource: 'configmaps', namespace: 'default', name: 'one' }])
  })

  it('are refused if it has been opened to its users, or deleted, since the request began', async () => {
    const { filling: _filling, ...open } = cluster
    for (const meanwhile of [
      (clusters: Map<string, LogicalCluster>) => void clusters.set(cluster.id, open),
      (clusters: Map<string, LogicalCluster>) => void clusters.delete(cluster.id),
    ]) {
      const [refusal, ...written] = await put(meanwhile)
      expect(refusal).to.contain('it is open to its users already')
      expect(written).to.deep.equal([])
    }
  })
})
