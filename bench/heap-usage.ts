// The live objects in the heap of another Node process, read through the protocol of its inspector.

export class HeapUsage implements Disposable {
  readonly #socket: WebSocket
  #lastId = 0

  private constructor(socket: WebSocket) {
    this.#socket = socket
  }

  /** Of a process that was started with `--inspect` for this port of 127.0.0.1. */
  static async connect(port: number, signal: AbortSignal): Promise<HeapUsage> {
    const response = await fetch(`http://127.0.0.1:${port}/json/list`, { signal })
    const [target] = (await response.json()) as { webSocketDebuggerUrl: string }[]
    if (target === undefined) throw new Error(`the inspector at port ${port} has no target`)
    const socket = new WebSocket(target.webSocketDebuggerUrl)
    await happens(socket, 'open', signal)
    return new HeapUsage(socket)
  }

  /** Collects garbage first. Of the main thread: its objects and buffers. */
  async aliveMiB(signal: AbortSignal): Promise<number> {
    await this.#call('HeapProfiler.collectGarbage', {}, signal)
    const expression = 'process.memoryUsage().heapUsed + process.memoryUsage().external'
    const { result } = (await this.#call('Runtime.evaluate', { expression }, signal)) as { result: { value: number } }
    return result.value / 2 ** 20
  }

  async #call(method: string, params: object, signal: AbortSignal): Promise<unknown> {
    const id = ++this.#lastId
    this.#socket.send(JSON.stringify({ id, method, params }))
    for (;;) {
      const event = await happens(this.#socket, 'message', signal)
      const message = JSON.parse(String((event as MessageEvent).data)) as { id?: number; result?: unknown }
      if (message.id !== id) continue
      if (message.result === undefined) throw new Error(`${method} failed: ${JSON.stringify(message)}`)
      return message.result
    }
  }

  [Symbol.dispose](): void {
    this.#socket.close()
  }
}

function happens(socket: WebSocket, type: 'open' | 'message', signal: AbortSignal): Promise<Event> {
  return new Promise((resolve, reject) => {
    const listening = new AbortController()
    const once = { once: true, signal: listening.signal }
    const settle = (then: () => void): void => {
      listening.abort()
      then()
    }
    const gone = (): void => settle(() => reject(new Error('the inspector closed the connection')))
    signal.throwIfAborted()
    socket.addEventListener(type, (event) => settle(() => resolve(event)), once)
    socket.addEventListener('close', gone, once)
    socket.addEventListener('error', gone, once)
    signal.addEventListener('abort', () => settle(() => reject(signal.reason as Error)), once)
  })
}
