import { once } from 'node:events'
import { createServer } from 'node:net'
import { expect } from 'chai'
import { freePort } from './free-port.ts'

describe('a free port', () => {
  it('can be bound at once', async () => {
    const port = await freePort()
    const server = createServer().listen(port, '127.0.0.1')
    await once(server, 'listening')
    expect(server.address()).to.include({ port })
    server.close()
  })

  it('rejects for an address that this machine does not have', async () => {
    expect(String(await freePort('192.0.2.254').catch((error: unknown) => error))).to.contain('EADDRNOTAVAIL')
  })
})
