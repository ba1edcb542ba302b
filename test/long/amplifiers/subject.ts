// The server that is measured: a hostile tenant that asks, a quiet one that waits, and what it all costs.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { startInstance, type Tenant } from '../../integration/kcp-instance.ts'
import type { Waited } from './quiet-neighbour.ts'
import { ServerUsage } from './server-usage.ts'

/** A request as it is sent. `path` begins below the logical cluster: `/api/v1/...`. */
export interface Sent {
  readonly method: string
  readonly path: string
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | object
}

/** What one request did. */
export interface Cost {
  /** 0: the connection ended without an answer. */
  readonly status: number
  readonly text: string
  /** True where the server's process ended; it was started again. */
  readonly hasDied: boolean
  readonly wallMs: number
  /** Of all threads and of the main thread, milliseconds. */
  readonly cpuMs: number
  readonly mainMs: number
  readonly residentMiB: number
  /** By the clock of all processes. */
  readonly began: number
  readonly ended: number
}

export interface Subject extends AsyncDisposable {
  readonly hostile: Tenant
  /** Sends it. `settle`: also waits, before and after, until the server has nothing to do any more, and counts that. */
  measure(sent: Sent, options: { settle: boolean }): Promise<Cost>
  /** Sends them, some at once, without measuring. Resolves with what the first refused one was answered; 404 and 409 are none. */
  prepare(all: readonly Sent[]): Promise<string | undefined>
  /** The longest wait of the neighbour for a request that was under way at that time, milliseconds. */
  worstWait(began: number, ended: number): number
  /** All waits so far. */
  waits(): readonly number[]
}

/** No request of one tenant may take longer, milliseconds. */
const answerMs = 30_000
const atOnce = 16

const now = (): number => performance.timeOrigin + performance.now()

/** Starts the server and the neighbour's process. */
export async function startSubject(): Promise<Subject> {
  await using stack = new AsyncDisposableStack()
  const kcp = stack.use(await startInstance())
  const hostile = await kcp.tenant('hostile')
  const quiet = await kcp.tenant('quiet')
  const waited: Waited[] = []
  const neighbour = fork(new URL('./quiet-neighbour.ts', import.meta.url), [quiet.kubeconfig, quiet.name])
  neighbour.on('message', (one: Waited) => waited.push(one))
  stack.defer(async () => {
    const exited = once(neighbour, 'exit')
    neighbour.kill('SIGKILL')
    await exited
  })
  let usage = new ServerUsage(kcp.process.pid)
  const send = (sent: Sent) => answerTo(hostile, sent)
  const owned = stack.move()
  return {
    hostile,
    async measure(sent, { settle }) {
      if (settle) await untilIdle(usage)
      const before = usage.now()
      const began = now()
      const { status, text } = await send(sent)
      const ended = now()
      const hasDied = !kcp.process.running
      const idle = hasDied ? usage.last() : settle ? await untilIdle(usage) : usage.now()
      if (hasDied) {
        await kcp.process.start()
        usage = new ServerUsage(kcp.process.pid)
      }
      return {
        ...{ status, text, hasDied, began, ended, wallMs: ended - began, residentMiB: idle.residentMiB },
        cpuMs: idle.allMs - before.allMs,
        mainMs: idle.mainMs - before.mainMs,
      }
    },
    async prepare(all) {
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
    },
    worstWait: (began, ended) =>
      waited.reduce((worst, { at, ms }) => (at <= ended && at + ms >= began ? Math.max(worst, ms) : worst), 0),
    waits: () => waited.map(({ ms }) => ms),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  }
}

async function answerTo(tenant: Tenant, sent: Sent): Promise<{ status: number; text: string }> {
  const { method, path, type = 'application/json', headers = {}, body } = sent
  const typed = body === undefined ? [] : ['Content-Type', type]
  try {
    return await tenant.http.request(method, tenant.base + path, {
      headers: [...typed, ...Object.entries(headers).flat()],
      signal: AbortSignal.timeout(answerMs),
      ...(body === undefined ? {} : { body }),
    })
  } catch (error) {
    return { status: 0, text: String(error) }
  }
}

/** A pass of this length that costs less than this is the neighbour's alone. */
const passMs = 8
const idleShare = 0.35
const settleMs = 30_000

/** Waits until the server has done what it still had to do after its answer. */
async function untilIdle(usage: ServerUsage): Promise<ReturnType<ServerUsage['now']>> {
  const deadline = performance.now() + settleMs
  let at = performance.now()
  let last = usage.now()
  for (;;) {
    await delay(passMs)
    const current = usage.now()
    const isIdle = current.allMs - last.allMs < (performance.now() - at) * idleShare
    if (isIdle || performance.now() > deadline) return current
    at = performance.now()
    last = current
  }
}
