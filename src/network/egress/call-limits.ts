// Bounds on the open calls of one logical cluster and on the bytes of their responses. A hanging call waits in the
// queue of its own destination: neither other logical clusters nor other destinations of the same one wait for it.
import { abortable, ResponseAccount, type HeldResponse } from '#async/index.ts'
import { EgressError } from './egress-error.ts'

export interface CallBounds {
  /** Open calls of one logical cluster to one destination. Default 32. */
  readonly perDestination?: number
  /** Open calls of one logical cluster; a destination without an open call may have one more. Default 256. */
  readonly perCluster?: number
  /** Bytes of the bodies of open calls of one logical cluster. Default 64 MiB. */
  readonly bytesPerCluster?: number
  /** Calls of one logical cluster that wait; above this number calls are refused. Default 1,024. */
  readonly waiting?: number
  /**
   * Bytes of unfinished responses of one logical cluster. Above this, only its oldest response is read further. Default
   * 16 MiB.
   */
  readonly responseBytesPerCluster?: number
  /**
   * Bytes of unfinished responses of all logical clusters. Above this, the calls of the logical cluster that holds the
   * most are ended. Default 128 MiB.
   */
  readonly responseBytes?: number
}

/** A call that has started. Disposing of it ends it. */
export interface EnteredCall extends Disposable {
  /** Aborted with EgressError when memory is short. */
  readonly ended: AbortSignal
  /**
   * Charges bytes of the response. Resolves when more may be read; undefined if more may be read at once. Rejects with
   * the reason of `ended`, and with signal.reason.
   */
  hold(bytes: number): Promise<void> | undefined
}

export interface Caller {
  readonly cluster: string
  readonly destination: string
  readonly bytes: number
}

interface Waiting extends Caller {
  readonly start: () => void
}

interface OpenCall {
  readonly life: AbortController
  readonly answer: HeldResponse
}

interface Account {
  running: number
  bytes: number
  readonly answers: ResponseAccount
  readonly open: Set<OpenCall>
  readonly destinations: Map<string, number>
  readonly waiting: Set<Waiting>
}

/** Calls to destinations without an open call may exceed `perCluster` up to this many times. */
const overdraft = 4

export class CallLimits {
  readonly #bounds: Required<CallBounds>
  readonly #accounts = new Map<string, Account>()
  /** Bytes of all unfinished responses. */
  #held = 0

  constructor({
    perDestination = 32,
    perCluster = 256,
    bytesPerCluster = 64 * 1024 * 1024,
    waiting = 1024,
    responseBytesPerCluster = 16 * 1024 * 1024,
    responseBytes = 128 * 1024 * 1024,
  }: CallBounds = {}) {
    const responses = { responseBytesPerCluster, responseBytes }
    this.#bounds = { perDestination, perCluster, bytesPerCluster, waiting, ...responses }
  }

  /**
   * Ends the calls of the logical cluster whose unfinished responses hold the most memory. Returns its id and the bytes
   * that this frees; undefined if no logical cluster holds `minBytes`.
   */
  shed(minBytes: number): { readonly cluster: string; readonly bytes: number } | undefined {
    let most: { readonly cluster: string; readonly account: Account } | undefined
    for (const [cluster, account] of this.#accounts)
      if (account.answers.held >= minBytes && account.answers.held > (most?.account.answers.held ?? 0))
        most = { cluster, account }
    if (most === undefined) return undefined
    const { cluster, account } = most
    const bytes = account.answers.held
    const why = new EgressError('the answers of this logical cluster take too much memory')
    for (const { life, answer } of [...account.open]) if (answer.bytes > 0) life.abort(why)
    return { cluster, bytes }
  }

  /**
   * Resolves when the call may start; disposing of the result ends it. Rejects with signal.reason when aborted, with
   * EgressError if too many wait.
   */
  async enter(caller: Caller, signal: AbortSignal): Promise<EnteredCall> {
    signal.throwIfAborted()
    const account = this.#accountOf(caller.cluster)
    if (!this.#mayStart(account, caller)) await this.#wait(account, caller, signal)
    else this.#count(account, caller, 1)
    const call: OpenCall = { life: new AbortController(), answer: account.answers.begin() }
    account.open.add(call)
    return {
      ended: call.life.signal,
      hold: (bytes) => this.#hold(call, bytes, signal),
      [Symbol.dispose]: () => {
        if (!account.open.delete(call)) return
        this.#held -= call.answer.bytes
        this.#count(account, caller, -1)
        this.#startWaiting(account)
        call.answer[Symbol.dispose]()
        if (account.running === 0 && account.waiting.size === 0) this.#accounts.delete(caller.cluster)
      },
    }
  }

  #hold({ life, answer }: OpenCall, bytes: number, signal: AbortSignal): Promise<void> | undefined {
    this.#held += bytes
    const waiting = answer.hold(bytes)
    if (this.#held > this.#bounds.responseBytes) this.shed(1)
    life.signal.throwIfAborted()
    return waiting && abortable(waiting, AbortSignal.any([signal, life.signal]))
  }

  #accountOf(cluster: string): Account {
    const known = this.#accounts.get(cluster)
    if (known !== undefined) return known
    const account: Account = {
      running: 0,
      bytes: 0,
      answers: new ResponseAccount({ maxBytes: this.#bounds.responseBytesPerCluster }),
      open: new Set(),
      destinations: new Map(),
      waiting: new Set(),
    }
    this.#accounts.set(cluster, account)
    return account
  }

  #mayStart({ running, bytes, destinations }: Account, caller: Caller): boolean {
    const { perDestination, perCluster, bytesPerCluster } = this.#bounds
    if (running === 0) return true
    const there = destinations.get(caller.destination) ?? 0
    const within = running < perCluster && bytes + caller.bytes <= bytesPerCluster
    if (there === 0) return within || (running < perCluster * overdraft && bytes + caller.bytes <= bytesPerCluster * 2)
    return within && there < perDestination
  }

  #count(account: Account, { destination, bytes }: Caller, by: 1 | -1): void {
    account.running += by
    account.bytes += by * bytes
    const there = (account.destinations.get(destination) ?? 0) + by
    if (there === 0) account.destinations.delete(destination)
    else account.destinations.set(destination, there)
  }

  #wait(account: Account, caller: Caller, signal: AbortSignal): Promise<void> {
    if (account.waiting.size >= this.#bounds.waiting)
      throw new EgressError('too many calls of this logical cluster wait for their answers')
    return new Promise((resolve, reject) => {
      const abort = (): void => {
        account.waiting.delete(waiting)
        reject(signal.reason as Error)
      }
      const start = (): void => {
        account.waiting.delete(waiting)
        signal.removeEventListener('abort', abort)
        this.#count(account, caller, 1)
        resolve()
      }
      const waiting: Waiting = { ...caller, start }
      account.waiting.add(waiting)
      signal.addEventListener('abort', abort, { once: true })
    })
  }

  /** Starts the calls that may start; a call to a full destination does not hold up the others. */
  #startWaiting(account: Account): void {
    for (const waiting of account.waiting) if (this.#mayStart(account, waiting)) waiting.start()
  }
}
