// The server that is measured: a hostile tenant that asks, a quiet one that waits, and what it all costs.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { startInstance, type Tenant } from '#test/integration/kcp-instance.ts'
import { measuredProcess, type ApiResponse, type Measure, type Sent } from './measured-process.ts'
import type { Waited } from './quiet-neighbour.ts'

export interface Subject extends AsyncDisposable {
  readonly hostile: Tenant
  /** Of the server. */
  readonly pid: number
  /** Sends it. `settle`: also waits, before and after, until the server has nothing to do any more, and counts that. */
  readonly measure: Measure
  /**
   * Sends them, some at once, without measuring. Resolves with what the first refused one was answered; 404 and 409 are
   * none.
   */
  prepare(all: readonly Sent[]): Promise<string | undefined>
  /** The longest wait of the neighbour for a request that was under way at that time, milliseconds. */
  worstWait(began: number, ended: number): number
  /** Sends it without measuring. */
  send(sent: Sent): Promise<ApiResponse>
  /** The waits so far, of requests that were under way between these times if any are given. */
  waits(began?: number, ended?: number): readonly number[]
}

/** No request of one tenant may take longer, milliseconds. */
const responseMs = 30_000
const atOnce = 16

/** Starts the server, with more arguments and variables of the environment if given, and the neighbour's process. */
export async function startSubject(
  args: readonly string[] = [],
  env: Readonly<Record<string, string>> = {},
): Promise<Subject> {
  await using stack = new AsyncDisposableStack()
  const kcp = stack.use(await startInstance(args, { env }))
  const hostile = await kcp.tenant('hostile')
  const quiet = await kcp.tenant('quiet')
  const waited: Waited[] = []
  const file = new URL('./quiet-neighbour.ts', import.meta.url)
  const neighbour = fork(file, [quiet.kubeconfig, quiet.name, String(kcp.process.pid)])
  neighbour.on('message', (one: Waited) => waited.push(one))
  stack.defer(async () => {
    const exited = once(neighbour, 'exit')
    neighbour.kill('SIGKILL')
    await exited
  })
  await once(neighbour, 'message')
  const send = (sent: Sent) => answerTo(hostile, sent)
  const measure = await measuredProcess(kcp.process, send, { restarted: (pid) => void neighbour.send(pid) })
  const owned = stack.move()
  return {
    hostile,
    get pid() {
      return kcp.process.pid
    },
    measure,
    prepare: (all) => sendAll(all, send),
    worstWait: (began, ended) =>
      waited.reduce(
        (worst, { at, tookMs, ms }) => (at <= ended && at + tookMs >= began ? Math.max(worst, ms) : worst),
        0,
      ),
    send,
    waits: (began = -Infinity, ended = Infinity) =>
      waited.flatMap(({ at, tookMs, ms }) => (at <= ended && at + tookMs >= began ? ms : [])),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function sendAll(all: readonly Sent[], send: (sent: Sent) => Promise<ApiResponse>): Promise<string | undefined> {
  let next = 0
  let refusal: string | undefined
  const client = async (): Promise<void> => {
    for (let sent = all[next++]; sent !== undefined; sent = all[next++]) {
      const { status, text } = await send(sent)
      if (status >= 300 && status !== 404 && status !== 409)
        refusal ??= `${sent.method} ${sent.path}: ${status} ${text.slice(0, 300)}`
    }
  }
  await Promise.all(Array.from({ length: atOnce }, client))
  return refusal
}

async function answerTo(tenant: Tenant, sent: Sent): Promise<ApiResponse> {
  const { method, path, type = 'application/json', headers = {}, body } = sent
  const typed = body === undefined ? [] : ['Content-Type', type]
  const ask = () =>
    tenant.http.request(method, tenant.base + path, {
      headers: [...typed, ...Object.entries(headers).flat()],
      signal: AbortSignal.timeout(responseMs),
      ...(body === undefined ? {} : { body }),
    })
  try {
    // The server ends connections that nobody used for seconds, also just when a request is sent.
    return await ask().catch((error: unknown) => {
      if ((error as NodeJS.ErrnoException).code !== 'ECONNRESET') throw error
      return ask()
    })
  } catch (error) {
    return { status: 0, text: String(error) }
  }
}
