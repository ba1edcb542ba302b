// A way to the API of a member, which can be cut.
import { readFile, writeFile } from 'node:fs/promises'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { join } from 'node:path'
import { freePort, type Cluster } from '#test/support/index.ts'

export class Way implements AsyncDisposable {
  /** With it, the member is reached by this way only. */
  readonly kubeconfig: string
  readonly #server: Server
  readonly #sockets = new Set<Socket>()
  #isOpen = true

  private constructor(server: Server, kubeconfig: string) {
    this.#server = server
    this.kubeconfig = kubeconfig
  }

  static async to({ hostAddress, server: url, kubeconfig: own, dir }: Cluster): Promise<Way> {
    const target = Number(new URL(url).port)
    const port = await freePort(hostAddress)
    const server = createServer()
    const kubeconfig = join(dir, 'through-the-way.kubeconfig')
    await writeFile(kubeconfig, (await readFile(own, 'utf8')).replaceAll(`:${target}`, `:${port}`), { mode: 0o600 })
    const way = new Way(server, kubeconfig)
    server.on('connection', (near) => {
      if (!way.#isOpen) return void near.destroy()
      const far = connect({ host: hostAddress, port: target })
      for (const socket of [near, far]) {
        way.#sockets.add(socket)
        socket
          .on('error', () => undefined)
          .on('close', () => (near.destroy(), far.destroy(), way.#sockets.delete(socket)))
      }
      near.pipe(far).pipe(near)
    })
    await new Promise<void>((resolve) => server.listen(port, hostAddress, resolve))
    return way
  }

  cut(): void {
    this.#isOpen = false
    for (const socket of this.#sockets) socket.destroy()
  }

  mend(): void {
    this.#isOpen = true
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }
}
