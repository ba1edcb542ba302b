// Finds an unused port, for programs that cannot bind port 0 and report the result.

import { createServer } from 'node:net'

/**
 * Asks the kernel for a free port of `address`. Another process may take it first: give programs that can port 0
 * instead, and others an address of their own run, where no other program binds.
 */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host: address, port: 0, exclusive: true }, () => {
      const bound = server.address()
      server.close(() =>
        typeof bound === 'object' && bound !== null ? resolve(bound.port) : reject(new Error('no port was bound')),
      )
    })
  })
}
