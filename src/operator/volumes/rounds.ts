// The rounds that run now. A round takes minutes or hours, so a reconcile only starts it and looks at it. A round that is
// lost with its process is run again: it sends only what differs.
import { pipeline } from 'node:stream/promises'
import { childSignal, systemClock, type Clock } from '#async/index.ts'
import type { VolumeMoveStatus } from '#crds/index.ts'
import {
  createMoverControl,
  dialWithin,
  issueMoverCredentials,
  MoverError,
  type MoverControl,
  type MoverRole,
  type RoundMode,
  type RoundOptions,
  type RoundProgress,
  type RoundResult,
  type Survey,
} from '#mover/index.ts'
import type { DirectWay } from './direct-way.ts'
import type { DialMover, MoveCredentials } from './movers.ts'

export interface Ways {
  readonly source: DialMover
  readonly target: DialMover
  readonly direct: DirectWay
}

export interface RoundWish {
  readonly mode: RoundMode
  readonly bandwidth?: number
}

export interface MoveState {
  /** Times in Unix milliseconds. */
  round?: { readonly mode: RoundMode; readonly since: number; progress?: RoundProgress; readonly end: () => void }
  /** The last round that ended; taken by the reconcile that follows. */
  ended?:
    { readonly mode: RoundMode; readonly result: RoundResult } | { readonly mode: RoundMode; readonly error: unknown }
  survey?: Survey
  /** Duration of the last two rounds, in seconds; the older first. */
  readonly seconds: number[]
  /** Bytes per second of the fastest full reading. */
  readRate?: number
  /** How the movers of the present or the last round reach each other. */
  connection?: NonNullable<VolumeMoveStatus['connection']>
  /** The address at which the target did not reach this pod of the source, why, and when, in Unix milliseconds. */
  unreached?: { readonly pod: string; readonly address: string; readonly message: string; readonly atMs: number }
  failures: number
  credentials?: MoveCredentials
  /** When the line for people was last written. */
  toldAt?: number
  /** Since when the move waits for a place, or has waited for the one that it has. */
  askedAt?: number
  /** When it lent its place to another move, because it got nowhere. */
  lentAt?: number
  /** When the move got its place, or when its last good round ended. */
  wellAt?: number
  /** What is left to copy is so little that it needs no place. */
  isCopied?: boolean
  /** Its movers are gone while it waits. */
  isResting?: boolean
  /** When an Event of each reason was last written. */
  readonly eventsAt: Map<string, number>
}

/** For how long an address that was not reached is not tried again: an attempt may take ten seconds. */
const directAgainMs = 10 * 60_000

interface DirectAttempt {
  readonly mode: RoundMode
  readonly direct: DirectWay
  readonly nowMs: () => number
  readonly attempt: (source: RoundOptions['source']) => Promise<RoundResult>
}

/**
 * Runs the round from pod to pod, if it may be; resolves with the reason if it cannot be. That the target says Unreached
 * is a reason: the address leads nowhere, or to somebody else. Any other failure is one of the round. The member says the
 * address, so only one address is tried for a pod. It is tried again after a while, but not by the last round, during
 * which the application is stopped.
 */
async function tryDirect(
  state: MoveState,
  { mode, direct, nowMs, attempt }: DirectAttempt,
): Promise<RoundResult | string> {
  if ('whyNot' in direct) return direct.whyNot
  const { address, pod } = direct
  const { unreached } = state
  if (unreached?.pod === pod) {
    const mayTry = mode === 'copy' && unreached.address === address && nowMs() - unreached.atMs >= directAgainMs
    if (!mayTry) return unreached.message
  }
  try {
    state.connection = { way: 'Direct', message: `the mover is reached at ${address}` }
    const result = await attempt({ address })
    delete state.unreached
    return result
  } catch (error) {
    if (!(error instanceof MoverError) || error.code !== 'Unreached') throw error
    const message = `not direct: ${error.message}`.slice(0, 1024)
    state.unreached = { pod, address, message, atMs: nowMs() }
    return message
  }
}

/** How long a connection to the source may take to open; the target waits longer. */
const relayMs = 30_000

/** The moves that this process works at. */
export class Rounds implements Disposable {
  readonly #states = new Map<string, MoveState>()
  readonly #signal: AbortSignal
  readonly #changed: (move: string) => void
  readonly #clock: Pick<Clock, 'now'>

  /** `changed` is called with the name of a move when its round has ended. */
  constructor(signal: AbortSignal, changed: (move: string) => void, clock: Pick<Clock, 'now'> = systemClock) {
    this.#signal = signal
    this.#changed = changed
    this.#clock = clock
  }

  stateOf(move: string): MoveState {
    let state = this.#states.get(move)
    if (state === undefined) this.#states.set(move, (state = { seconds: [], failures: 0, eventsAt: new Map() }))
    return state
  }

  async credentialsOf(move: string): Promise<MoveCredentials> {
    const state = this.stateOf(move)
    return (state.credentials ??= await issueMoverCredentials(move))
  }

  /** Starts a round; nothing if one runs. */
  start(move: string, wish: RoundWish, ways: Ways): void {
    const state = this.stateOf(move)
    const { credentials } = state
    if (state.round !== undefined || credentials === undefined) return
    const life = childSignal(this.#signal)
    let isEnded = false
    const round: NonNullable<MoveState['round']> = {
      mode: wish.mode,
      since: Date.now(),
      end: () => {
        isEnded = true
        life.abort(new DOMException('the round was ended', 'AbortError'))
      },
    }
    state.round = round
    const control = (role: MoverRole): MoverControl =>
      createMoverControl({ credentials: credentials.control, role, dial: ways[role] })
    const run = async (): Promise<RoundResult> => {
      state.survey ??= await control('source').survey(() => undefined, life.signal)
      const { mode, bandwidth } = wish
      const attempt = (source: RoundOptions['source']): Promise<RoundResult> =>
        control('target').round(
          { mode, source, ...(bandwidth !== undefined && { bandwidth }) },
          (progress) => (round.progress = progress),
          life.signal,
        )
      const nowMs = (): number => this.#clock.now()
      const whyNot = await tryDirect(state, { mode, direct: ways.direct, nowMs, attempt })
      if (typeof whyNot !== 'string') return whyNot
      state.connection = { way: 'Relayed', message: whyNot }
      void this.#relay(control('target'), ways.source, life.signal)
      return await attempt({ relay: true })
    }
    void run()
      .then((result) => {
        state.ended = { mode: wish.mode, result }
        state.wellAt = systemClock.now()
      })
      .catch((error: unknown) => {
        // A round that we end ourselves has not failed.
        if (!isEnded) state.ended = { mode: wish.mode, error }
      })
      .finally(() => {
        life[Symbol.dispose]()
        delete state.round
        if (!this.#signal.aborted) this.#changed(move)
      })
  }

  /** Joins the target's connection with the source: the bytes are their TLS session. */
  async #relay(target: MoverControl, source: DialMover, signal: AbortSignal): Promise<void> {
    try {
      const far = await target.relay(signal)
      const near = await dialWithin(source, relayMs, signal).catch((error: unknown) => {
        far.destroy()
        throw error
      })
      await Promise.all([pipeline(near, far), pipeline(far, near)])
    } catch {
      // The round ends with an error of its own.
    }
  }

  /** Ends the round of a move, and forgets the move. */
  forget(move: string): void {
    this.#states.get(move)?.round?.end()
    this.#states.delete(move)
  }

  [Symbol.dispose](): void {
    for (const { round } of this.#states.values()) round?.end()
  }
}
