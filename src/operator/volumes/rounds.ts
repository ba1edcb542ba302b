// The rounds that run now. A round takes minutes or hours, so a reconcile only starts it and looks at it. A round that is
// lost with its process is run again: it sends only what differs.
import { pipeline } from 'node:stream/promises'
import { childSignal, systemClock } from '#async/index.ts'
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
  /** The pod of the source that the target did not reach, and why: rounds with this pod are relayed. */
  unreached?: { readonly pod: string; readonly message: string }
  failures: number
  credentials?: MoveCredentials
  /** When the line for people was last written. */
  toldAt?: number
  /** Since when the move waits for a place, or has waited for the one that it has. */
  askedAt?: number
  /** When the move got its place, or when its last good round ended. */
  wellAt?: number
  /** What is left to copy is so little that it needs no place. */
  isCopied?: boolean
  /** Its movers are gone while it waits. */
  isResting?: boolean
  /** When an Event of each reason was last written. */
  readonly eventsAt: Map<string, number>
}

/**
 * Runs the round from pod to pod, if it may be; resolves with the reason if it cannot be. An address that leads nowhere,
 * or to somebody else, is a reason; what fails after the movers have met is not. The member says the address, so only
 * one address is tried for a pod.
 */
async function tryDirect(
  state: MoveState,
  direct: Ways['direct'],
  attempt: (source: RoundOptions['source']) => Promise<RoundResult>,
): Promise<RoundResult | string> {
  if ('whyNot' in direct) return direct.whyNot
  const { address, pod } = direct
  if (state.unreached?.pod === pod) return state.unreached.message
  try {
    state.connection = { way: 'Direct', message: `the mover is reached at ${address}` }
    return await attempt({ address })
  } catch (error) {
    const { phase = 'connecting' } = state.round?.progress ?? {}
    const isUnreached = error instanceof MoverError && (error.code === 'PeerLost' || error.code === 'PeerRefused')
    if (!isUnreached || phase !== 'connecting') throw error
    const message = `not direct: ${error.message}`.slice(0, 1024)
    state.unreached = { pod, message }
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

  /** `changed` is called with the name of a move when its round has ended. */
  constructor(signal: AbortSignal, changed: (move: string) => void) {
    this.#signal = signal
    this.#changed = changed
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
      const whyNot = await tryDirect(state, ways.direct, attempt)
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
