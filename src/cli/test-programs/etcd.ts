// `etcd` of bin/envtest. It stores nothing itself: it tells `kube-apiserver` of bin/envtest the directory of the data,
// and is healthy until it is stopped.
import { mkdir } from 'node:fs/promises'
import { createServer } from 'node:http'
import { resolve } from 'node:path'
import { ExitError } from '#cli/process/exit-error.ts'
import { aborted, processSignal } from '#cli/process/process-signal.ts'
import { dataDirectoryPath, type DataDirectory } from './data-directory.ts'
import { parseFlags, listOf, usageOf, valueOf } from './flags.ts'

const usage = usageOf('etcd', 'Stands in for etcd beside the kube-apiserver in the same folder.', {
  'data-dir': 'directory of the data',
  'listen-client-urls': 'addresses to listen on, http only',
  'unsafe-no-fsync': 'do not wait for the disk',
})

/** Runs the program until it is stopped. Rejects with ExitError if it cannot listen. */
export async function run(words: readonly string[]): Promise<void> {
  const flags = parseFlags(words)
  if (flags.has('help')) {
    console.log(usage)
    return
  }
  if (flags.has('version')) {
    console.log('etcd Version: 3.6.0 (kcp)')
    return
  }
  const signal = processSignal()
  const dir = resolve(valueOf(flags, 'data-dir') ?? 'default.etcd')
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const known: DataDirectory = { dir, isDurable: valueOf(flags, 'unsafe-no-fsync') !== 'true' }
  const urls = listOf(flags, 'listen-client-urls')
  const servers = await Promise.all(
    (urls.length > 0 ? urls : ['http://127.0.0.1:2379']).map((url) => listen(new URL(url), known)),
  )
  await aborted(signal)
  for (const server of servers) {
    server.close()
    server.closeAllConnections()
  }
}

async function listen({ protocol, hostname, port }: URL, known: DataDirectory) {
  if (protocol !== 'http:')
    throw new ExitError(`cannot listen on ${protocol}//${hostname}:${port}: only http is served`)
  const answers = new Map<string | undefined, object>([
    ['/health', { health: 'true', reason: '' }],
    ['/version', { etcdserver: '3.6.0', etcdcluster: '3.6.0' }],
    [dataDirectoryPath, known],
  ])
  const server = createServer((request, response) => {
    const answer = answers.get(request.url)
    response.writeHead(answer === undefined ? 404 : 200, { 'content-type': 'application/json' })
    response.end(JSON.stringify(answer ?? {}))
  })
  const { promise, resolve: listening, reject } = Promise.withResolvers<undefined>()
  server.once('error', (error) => reject(new ExitError(`cannot listen on ${hostname}:${port}: ${error.message}`)))
  server.listen(Number(port), hostname.replace(/^\[|\]$/g, ''), () => listening(undefined))
  await promise
  return server
}
