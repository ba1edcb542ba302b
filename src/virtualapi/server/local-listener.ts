// The listener for the other workers of one server: HTTP/2 on a Unix socket, without TLS. Its clients are believed what
// they say about their own clients, so nobody but our user may reach it: its directory is ours alone.
import { chmod, lstat } from 'node:fs/promises'
import { createServer, type IncomingHttpHeaders, type ServerHttp2Stream } from 'node:http2'
import type { Socket } from 'node:net'
import { dirname } from 'node:path'
import { PendingConnections } from '#network/listening/index.ts'
import type { Push } from '#virtualapi/request/exchange.ts'
import { ConnectionTurns } from './limits/connection-turns.ts'
import type { ServerDependencies } from './dependencies.ts'
import {
  acceptsStream,
  answerStream,
  closeServer,
  maxPeerStreams,
  peerSession,
  streamSettings,
  type ListenOptions,
} from './listener.ts'
import type { Serving } from './serve.ts'

export interface LocalListenOptions extends Pick<ListenOptions, 'signal' | 'console' | 'agents'> {
  /** Path of the socket, in a directory that only our user can enter. */
  readonly path: string
}

/** Listens for the other workers. Rejects if others than our user could reach the socket. */
export async function listenLocally(
  dependencies: ServerDependencies,
  { path, signal, console, agents }: LocalListenOptions,
): Promise<AsyncDisposable> {
  await requireOwnDirectory(dirname(path))
  // Other workers' connections are never pending.
  const pending = new PendingConnections({ maxMs: 60_000, maxPerNetwork: 1, max: 1 })
  const pushes = new Set<Push>()
  const serving: Serving = {
    dependencies,
    signal,
    pending,
    pushes,
    turns: new ConnectionTurns(),
    console,
    agents,
    requests: { inFlight: 0 },
    isForPeers: true,
  }
  const server = createServer({ ...peerSession, settings: { ...streamSettings, maxConcurrentStreams: maxPeerStreams } })
  server.on('stream', (stream: ServerHttp2Stream, headers: IncomingHttpHeaders, _: number, raw: string[]) => {
    if (acceptsStream(stream, headers)) answerStream(stream, raw, serving)
  })
  server.on('sessionError', () => undefined)
  const connections = new Set<Socket>()
  server.on('connection', (connection: Socket) => {
    connections.add(connection)
    connection.once('close', () => connections.delete(connection))
  })
  const endPushes = (): void => {
    for (const push of pushes) push.end()
  }
  signal.addEventListener('abort', endPushes, { once: true })
  const listening = Promise.withResolvers<undefined>()
  server.once('error', listening.reject)
  server.listen({ path }, () => listening.resolve(undefined))
  await listening.promise
  server.off('error', listening.reject)
  await chmod(path, 0o600)
  const end = (): Promise<void> => new Promise((resolve) => server.close(() => resolve()))
  return {
    [Symbol.asyncDispose]: () => {
      pending[Symbol.dispose]()
      signal.removeEventListener('abort', endPushes)
      return closeServer(server, { connections, serving }, end)
    },
  }
}

/** Rejects unless the directory is a real one, belongs to our user, and nobody else can enter it. */
export async function requireOwnDirectory(dir: string): Promise<void> {
  const found = await lstat(dir)
  const isOurs = found.isDirectory() && found.uid === process.getuid?.() && (found.mode & 0o077) === 0
  if (!isOurs) throw new Error(`"${dir}" can be entered by others than our user: it must be a directory of mode 0700`)
}
