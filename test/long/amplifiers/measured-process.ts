// The cost of a request for the process that answers it, whatever else runs on the machine.
import { setTimeout as delay } from 'node:timers/promises'
import { ServerUsage, type Usage } from './server-usage.ts'

/** A request as it is sent. `path` begins below the logical cluster: `/api/v1/...`. */
export interface Sent {
  readonly method: string
  readonly path: string
  readonly type?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | object
}

export interface ApiResponse {
  /** 0: the connection ended without an answer. */
  readonly status: number
  readonly text: string
}

/** What one request did. */
export interface Cost extends ApiResponse {
  /** True where the server's process ended; it was started again. */
  readonly hasDied: boolean
  readonly wallMs: number
  /** Of all threads and of the main thread, milliseconds, without what the server uses when nothing is asked. */
  readonly cpuMs: number
  readonly mainMs: number
  readonly residentMiB: number
  /** By the clock of all processes. With `settle`, `ended` is when the server had nothing to do any more. */
  readonly began: number
  readonly ended: number
}

/** The process that answers. */
export interface Answering {
  readonly pid: number
  readonly running: boolean
  start(): Promise<void>
}

export type Measure = (sent: Sent, options: { settle: boolean }) => Promise<Cost>

const now = (): number => performance.timeOrigin + performance.now()

/** Resolves with a function that sends a request and tells its cost, once it is known what the server uses without. */
export async function measuredProcess(
  process: Answering,
  send: (sent: Sent) => Promise<ApiResponse>,
  { restarted }: { restarted: (pid: number) => void },
): Promise<Measure> {
  let usage = new ServerUsage(process.pid)
  const idleShares = await sharesWhenIdle(usage)
  return async (sent, { settle }) => {
    if (settle) await untilIdle(usage)
    const before = usage.now()
    const began = now()
    const { status, text } = await send(sent)
    const answered = now()
    const hasDied = !process.running
    const after = hasDied ? usage.last() : settle ? await untilIdle(usage) : usage.now()
    const ended = now()
    if (hasDied) {
      await process.start()
      usage = new ServerUsage(process.pid)
      restarted(process.pid)
    }
    const used = (share: number, fromMs: number, toMs: number): number =>
      Math.max(0, toMs - fromMs - share * (ended - began))
    return {
      ...{ status, text, hasDied, began, ended, wallMs: answered - began, residentMiB: after.residentMiB },
      cpuMs: used(idleShares.all, before.allMs, after.allMs),
      mainMs: used(idleShares.main, before.mainMs, after.mainMs),
    }
  }
}

const idleForMs = 500

/** Parts of a processor that it uses for the neighbour and for itself: the least of some tries. */
async function sharesWhenIdle(usage: ServerUsage): Promise<{ all: number; main: number }> {
  let shares = { all: 1, main: 1 }
  for (let tries = 0; tries < 3; tries++) {
    const before = await untilIdle(usage)
    const began = performance.now()
    await delay(idleForMs)
    const after = usage.now()
    const passedMs = performance.now() - began
    const all = (after.allMs - before.allMs) / passedMs
    if (all < shares.all) shares = { all, main: (after.mainMs - before.mainMs) / passedMs }
  }
  return shares
}

/** A pass of this length that costs less than this is the neighbour's alone. */
const passMs = 8
const idleShare = 0.35
const settleMs = 30_000

/**
 * Waits until the server has done what it still had to do after its answer: it uses little, and no thread would use
 * more.
 */
export async function untilIdle(usage: ServerUsage): Promise<Usage> {
  const deadline = performance.now() + settleMs
  let at = performance.now()
  let last = usage.now()
  for (;;) {
    await delay(passMs)
    const current = usage.now()
    const usesLittle = current.allMs - last.allMs < (performance.now() - at) * idleShare
    if ((usesLittle && !current.isRunning) || performance.now() > deadline) return current
    at = performance.now()
    last = current
  }
}
