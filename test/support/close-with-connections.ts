import { once } from 'node:events'
import type { Server, Socket } from 'node:net'

/**
 * Ends a server that other processes are connected to, with every connection of it; call the result once, at the end.
 * `closeAllConnections` knows only those that have asked something: a client that keeps a spare connection, or is still
 * in its TLS handshake, would keep the server open for ever.
 */
export function closeWithConnections(server: Server): () => Promise<void> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.once('close', () => sockets.delete(socket))
  })
  return async () => {
    if (!server.listening) return
    const closed = once(server, 'close')
    server.close()
    for (const socket of sockets) socket.destroy()
    await closed
  }
}
