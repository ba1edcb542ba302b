// An HTTP proxy that opens connections on CONNECT, as companies have them at the edge of their networks.
import { once } from 'node:events'
import { createServer, type IncomingMessage } from 'node:http'
import { connect, type AddressInfo, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'

export interface HttpProxy extends AsyncDisposable {
  readonly port: number
  /** Each request that it had: method, target, credentials. */
  readonly seen: ReadonlySet<string>
  /** Number of connections that it has cut because they were idle. */
  readonly idle: number
  /** Closes all its connections. */
  cut(): void
}

/** `idleMs`: it cuts connections over which nothing came for so long. Default: never. */
export async function startHttpProxy({
  host = '127.0.0.1',
  idleMs = 0,
}: { readonly host?: string; readonly idleMs?: number } = {}): Promise<HttpProxy> {
  const seen = new Set<string>()
  const open = new Set<Duplex>()
  let idle = 0
  const server = createServer()
  const follow = (socket: Duplex): void => {
    open.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => open.delete(socket))
  }
  server.on('connect', ({ method = '', url = '', headers }: IncomingMessage, client: Socket) => {
    seen.add(`${method} ${url} ${headers['proxy-authorization'] ?? ''}`)
    const { hostname, port } = new URL(`http://${url}`)
    const target = connect(Number(port), hostname.replace(/^\[|\]$/g, ''), () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      client.pipe(target).pipe(client)
    })
    client.setTimeout(idleMs, () => {
      idle++
      client.destroy()
      target.destroy()
    })
    client.once('close', () => target.destroy())
    target.once('close', () => client.destroy())
    for (const socket of [client, target]) follow(socket)
  })
  server.listen(0, host)
  await once(server, 'listening')
  const cut = (): void => {
    for (const socket of open) socket.destroy()
  }
  return {
    port: (server.address() as AddressInfo).port,
    seen,
    get idle() {
      return idle
    },
    cut,
    async [Symbol.asyncDispose]() {
      cut()
      server.close()
      await once(server, 'close')
    },
  }
}
