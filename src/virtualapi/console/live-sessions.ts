// The requests of sessions that are being answered, so that watches, logs and terminals end with their session.
import type { Clock } from '#async/index.ts'
import type { Session } from './session.ts'

interface Live {
  readonly session: Session
  readonly ends: Set<() => void>
  readonly timer: NodeJS.Timeout
}

export class LiveSessions implements Disposable {
  readonly #clock: Pick<Clock, 'now'>
  readonly #live = new Map<string, Live>()

  constructor({ clock }: { readonly clock: Pick<Clock, 'now'> }) {
    this.#clock = clock
  }

  /** Calls `end` when the session ends before the returned function is called. */
  enter(session: Session, end: () => void): () => void {
    const live = this.#live.get(session.id) ?? this.#begin(session)
    live.ends.add(end)
    return () => {
      live.ends.delete(end)
      if (live.ends.size === 0 && this.#live.get(session.id) === live) this.#forget(live)
    }
  }

  /** Ends what the sessions do that fulfil the condition. */
  end(condition: (session: Session) => boolean): void {
    for (const live of [...this.#live.values()]) if (condition(live.session)) this.#end(live)
  }

  [Symbol.dispose](): void {
    for (const { timer } of this.#live.values()) clearTimeout(timer)
    this.#live.clear()
  }

  #begin(session: Session): Live {
    const leftMs = Math.max(0, session.endsMs - this.#clock.now())
    const timer = setTimeout(() => this.end(({ id }) => id === session.id), leftMs).unref()
    const live = { session, ends: new Set<() => void>(), timer }
    this.#live.set(session.id, live)
    return live
  }

  #end(live: Live): void {
    this.#forget(live)
    for (const end of live.ends) end()
  }

  #forget({ session, timer }: Live): void {
    clearTimeout(timer)
    this.#live.delete(session.id)
  }
}
