import { createServer, type AddressInfo, type Server, type Socket } from 'node:net'
import { once } from 'node:events'
import { expect } from 'chai'
import { CertificateAuthority, waitFor } from '#test/support/index.ts'
import { AcceptCheck } from '#gateway/accept-check.ts'
import { parseIdentity, type Identity } from '#gateway/identity.ts'
import { listenForPeers } from '#gateway/peer-server.ts'

describe('the check whether a gateway takes connections', () => {
  let identity: Identity
  before(async () => {
    const { certificate, key } = await CertificateAuthority.create('gateway')
    const data = { 'tls.crt': btoa(certificate), 'tls.key': btoa(key) }
    identity = parseIdentity({ apiVersion: 'v1', kind: 'Secret', metadata: {}, data })
  })

  it('fails while its own port does not answer, and passes again', async () => {
    const refused: string[] = []
    const options = {
      peerOf: () => undefined,
      onRequest: () => undefined,
      onRefused: (why: string) => refused.push(why),
    }
    const good = await listenForPeers({ ...options, identity, port: 0 })
    const sockets: Socket[] = []
    const dead: Server = createServer((socket) => sockets.push(socket.on('error', () => undefined))).listen(0)
    await once(dead, 'listening')
    let { port } = good
    using check = new AcceptCheck({ port: () => port, identity: () => identity, everyMs: 50, maxAgeMs: 1500 })
    const until = (isTaken: boolean): Promise<unknown> =>
      waitFor(() => check.takesConnections === isTaken, { what: `the check to be ${isTaken}`, deadlineMs: 15_000 })
    await new Promise((resolve) => setTimeout(resolve, 2000))
    expect(check.takesConnections).to.equal(true)
    port = (dead.address() as AddressInfo).port
    await until(false)
    port = good.port
    await until(true)
    // Its own connections are no strangers.
    expect(refused).to.deep.equal([])
    for (const socket of sockets) socket.destroy()
    dead.close()
    good.close()
  })
})
