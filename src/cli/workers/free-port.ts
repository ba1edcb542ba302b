// The port on which all workers listen.
import { createServer, type AddressInfo } from 'node:net'
import { ExitError, messageOf } from '#cli/process/exit-error.ts'

/**
 * The port for all workers; a free one for 0. Rejects with ExitError if it is in use: as workers share a port, the
 * system would also share it with another installation.
 */
export async function freePort(address: { readonly port: number; readonly host: string }): Promise<number> {
  const probe = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  probe.once('error', (cause) =>
    reject(new ExitError(`cannot listen on ${address.host}:${address.port}: ${messageOf(cause)}`, { cause })),
  )
  probe.listen(address, () => {
    const { port } = probe.address() as AddressInfo
    probe.close(() => resolve(port))
  })
  return await promise
}
