import { once } from 'node:events'
import { get } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect } from 'chai'
import { createMetrics } from '#telemetry/index.ts'
import { listenForHealth, type HealthServer } from './health-server.ts'

describe('the health of a gateway', () => {
  let server: HealthServer
  const open: Socket[] = []
  before(async () => {
    const metrics = createMetrics()
    const notReady = (): undefined => undefined
    server = await listenForHealth({ port: 0, notReady, metrics, beforeScrape: () => undefined })
  })
  after(async () => {
    for (const socket of open) socket.destroy()
    await server[Symbol.asyncDispose]()
  })

  async function statusOf(path: string, localAddress: string): Promise<number | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
    get({ host: '127.0.0.1', port: server.port, path, localAddress, agent: false }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
    return promise
  }

  it('is told while others hold all the connections that it takes, from one address and from many', async () => {
    for (let i = 0; i < 200; i++) {
      const localAddress = `127.0.79.${1 + (i < 100 ? 0 : i)}`
      const socket = connect({ host: '127.0.0.1', port: server.port, localAddress }).on('error', () => undefined)
      open.push(socket)
      await once(socket, 'connect')
      if (i % 50 !== 49) continue
      for (const path of ['/livez', '/readyz', '/metrics'])
        expect(await statusOf(path, '127.0.0.1'), `${path} after ${i}`).to.equal(200)
    }
  })
})
