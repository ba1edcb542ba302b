// Connections to a port of a simulated pod, which speaks simulated HTTP: for the `proxy` subresources of pods and
// Services, and for webhooks.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { duplexPair } from 'node:stream'
import { badRequest } from '#apimachinery/status/index.ts'
import type { PodRun } from '#simulation/nodes/pod-run.ts'
import type { Channels } from './channels.ts'

const [dataChannel, errorChannel] = [0, 1]

/** The port of the query. Throws BadRequest unless there is exactly one. */
export function portIn(query: URLSearchParams): number {
  const ports = query.getAll('ports').flatMap((text) => text.split(','))
  const port = Number(ports[0])
  if (ports.length !== 1 || !(port > 0)) throw badRequest('a simulated pod takes one port for each connection')
  return port
}

/** Serves the connection: each channel begins with the port, as kubelet's. */
export function startPortForward(connection: Channels, run: PodRun, port: number): void {
  const [near, far] = duplexPair()
  const head = Buffer.alloc(2)
  head.writeUInt16LE(port)
  connection.send(dataChannel, head)
  connection.send(errorChannel, head)
  const server = createServer(
    { keepAlive: false },
    (request, response) => void answer(run, { port, request, response }),
  )
  server.emit('connection', near)
  connection.onMessage((channel, data) => {
    if (channel === dataChannel) far.write(data)
  })
  far.on('data', (chunk: Buffer) => connection.send(dataChannel, chunk))
  far.once('end', () => connection.close())
  connection.onClose(() => {
    far.destroy()
    near.destroy()
  })
}

async function answer(
  run: PodRun,
  {
    port,
    request,
    response,
  }: { readonly port: number; readonly request: IncomingMessage; readonly response: ServerResponse },
): Promise<void> {
  request.resume()
  response.setHeader('content-type', 'text/plain; charset=utf-8')
  response.setHeader('connection', 'close')
  try {
    const { method = 'GET', url = '/' } = request
    const { status, body } = await run.request(port, { method, path: url.slice(0, 200), from: 'a proxy', depth: 0 })
    response.writeHead(status).end(body)
  } catch (error) {
    response.writeHead(502).end(`${error instanceof Error ? error.message : String(error)}\n`)
  }
}
