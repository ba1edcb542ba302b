import { expect } from 'chai'
import { once } from 'node:events'
import { get } from 'node:https'
import { connect } from 'node:net'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { createMetrics, silentLogger } from '#telemetry/index.ts'
import { createPki, createPkiMaterial, metricsReadersGroup, type KeyPair, type Pki } from '#virtualapi/index.ts'
import { listenForScrapes, type MetricsListener } from './metrics-listener.ts'

const servername = 'kcp-operator.kcp-system.svc'

describe('the listener for scrapes', () => {
  let pki: Pki
  let listener: MetricsListener
  before(async () => {
    pki = createPki(await createPkiMaterial())
    const metrics = createMetrics()
    listener = await listenForScrapes({ metrics, port: 0, hosts: [servername], pki, log: silentLogger })
  })
  after(() => listener[Symbol.asyncDispose]())

  async function statusOf(path: string, pair?: KeyPair): Promise<number | undefined> {
    const { promise, resolve, reject } = Promise.withResolvers<number | undefined>()
    const tls = { ca: pki.servingCa, servername, ...(pair && { cert: pair.certificate, key: pair.key }) }
    get({ host: '127.0.0.1', port: listener.port, path, agent: false, ...tls }, (response) => {
      response.resume()
      resolve(response.statusCode)
    }).on('error', reject)
    return promise
  }
  const issue = (realm: ClusterId | 'installation', group: string): Promise<KeyPair> =>
    pki.issueClientCertificate({ commonName: 'somebody', organizations: [group], realm, days: 1 })

  it('answers metrics, and nothing else, to the certificate for Prometheus', async () => {
    const prometheus = await issue('installation', metricsReadersGroup)
    expect(await statusOf('/metrics', prometheus)).to.equal(200)
    expect(await statusOf('/debug', prometheus)).to.equal(404)
  })

  it('refuses who has none, another group, or a certificate of a tenant that names the group', async () => {
    expect(await statusOf('/metrics')).to.equal(403)
    expect(await statusOf('/metrics', await issue('installation', 'others'))).to.equal(403)
    expect(await statusOf('/metrics', await issue('abcdefghij' as ClusterId, metricsReadersGroup))).to.equal(403)
  })

  it('answers while another address holds all the connections that it takes', async () => {
    const open = Array.from({ length: 80 }, () => {
      const socket = connect({ host: '127.0.0.1', port: listener.port, localAddress: '127.0.79.1' })
      return socket.on('error', () => undefined)
    })
    await Promise.all(open.map((socket) => once(socket, 'connect')))
    expect(await statusOf('/metrics', await issue('installation', metricsReadersGroup))).to.equal(200)
    for (const socket of open) socket.destroy()
  })
})
