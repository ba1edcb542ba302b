// Where a demo runs if it is not told: a temporary directory, and a port that is free.
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** A new directory, which disposal removes with all that is in it. */
export async function temporaryDirectory(): Promise<AsyncDisposable & { readonly rootDir: string }> {
  const rootDir = await mkdtemp(join(tmpdir(), 'kcp-demo-'))
  return { rootDir, [Symbol.asyncDispose]: () => rm(rootDir, { recursive: true, force: true }) }
}

/** The port, or any free one if it is in use. */
export async function usablePort(port: number): Promise<number> {
  return (await tryListen(port)) ?? (await tryListen(0)) ?? port
}

async function tryListen(port: number): Promise<number | undefined> {
  const server = createServer()
  const { promise, resolve } = Promise.withResolvers<number | undefined>()
  server.once('error', () => resolve(undefined))
  server.listen(port, '127.0.0.1', () => {
    const { port: found } = server.address() as AddressInfo
    server.close(() => resolve(found))
  })
  return await promise
}
