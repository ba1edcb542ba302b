// Finds an unused port, for programs that cannot bind port 0 and report the result.

import { randomInt } from 'node:crypto'
import { createServer } from 'node:net'

/** Below the ports that the kernel gives to outgoing connections, each of which would take one, and to NodePorts. */
const [lowest, highest] = [20_000, 29_999]
const tries = 100

/**
 * A free port of `address`. Another process may take it first: give programs that can port 0 instead, and others an
 * address of their own run, where no other program binds.
 */
export async function freePort(address = '127.0.0.1'): Promise<number> {
  for (let attempt = 1; ; attempt++) {
    const port = randomInt(lowest, highest + 1)
    try {
      await bindOnce(address, port)
      return port
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE' || attempt >= tries) throw error
    }
  }
}

async function bindOnce(host: string, port: number): Promise<void> {
  const server = createServer()
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen({ host, port, exclusive: true }, () => server.close(() => resolve()))
  })
}
