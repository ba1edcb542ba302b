// Finds requests that block the event loop. In one pass of the loop, the time between two marks was spent by the
// request that set the first of them.
import type { Counter, Gauge, Logger, Metrics } from '#telemetry/index.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import { verbLabel } from './request-labels.ts'

/** Synchronous work that takes longer delays all other requests noticeably, milliseconds. */
const longMs = 50
/**
 * How long after its start the process warms up, milliseconds: it still compiles its code, so its first requests may
 * take long.
 */
const warmUpMs = 10_000
/** At most one line is logged in this time, milliseconds. */
const logEveryMs = 1000
const maxUserAgentLength = 200

export class PassMonitor {
  readonly #log: Logger
  readonly #warmUntil: number
  readonly #longPasses: Counter
  readonly #longest: Gauge
  #current: Exchange | undefined
  #since = 0
  #longestMs = 0
  #loggedAt = -Infinity
  #notLogged = 0

  /** `warmsUp`: the process has just begun. */
  constructor({ log, metrics, warmsUp = false }: { log: Logger; metrics: Metrics; warmsUp?: boolean }) {
    this.#log = log
    this.#warmUntil = warmsUp ? warmUpMs : 0
    this.#longPasses = metrics.counter({
      name: 'kcp_event_loop_blocked_total',
      help: `Times that a request blocked the event loop for more than ${longMs} ms`,
      labels: ['verb'],
    })
    this.#longest = metrics.gauge({
      name: 'kcp_event_loop_blocked_longest_seconds',
      help: 'The longest time since the last scrape that a request blocked the event loop',
      across: 'max',
      read: () => this.#takeLongest(),
    })
    this.#longest.set(0)
  }

  /** From now on, until the next mark or the end of this pass of the event loop, the thread works for this request. */
  mark(exchange: Exchange): void {
    const now = performance.now()
    if (this.#current === undefined) setImmediate(this.#endPass)
    else this.#end(this.#current, now)
    this.#current = exchange
    this.#since = now
  }

  readonly #endPass = (): void => {
    if (this.#current !== undefined) this.#end(this.#current, performance.now())
    this.#current = undefined
  }

  #end(exchange: Exchange, now: number): void {
    const ms = now - this.#since
    if (ms > this.#longestMs) this.#longestMs = ms
    if (ms > longMs) this.#report(exchange, ms, now)
  }

  #report(exchange: Exchange, ms: number, now: number): void {
    const info = exchange.isUnderstood ? exchange.info : undefined
    this.#longPasses.inc({ verb: verbLabel(info?.verb) })
    if (now - this.#loggedAt < logEveryMs) {
      this.#notLogged++
      return
    }
    const { target } = info ?? {}
    this.#log[now < this.#warmUntil ? 'info' : 'warn']('a request blocked the event loop', {
      milliseconds: Math.round(ms),
      method: exchange.request.method,
      resource: target?.kind === 'resource' ? `${target.resource}.${target.group}` : target?.path,
      subresource: target?.kind === 'resource' ? target.subresource : undefined,
      cluster: exchange.cluster?.id,
      userAgent: exchange.header('user-agent')?.slice(0, maxUserAgentLength),
      notLogged: this.#notLogged,
    })
    this.#loggedAt = now
    this.#notLogged = 0
  }

  /** The longest time that a request blocked the event loop since the last call, seconds. */
  #takeLongest(): number {
    const seconds = this.#longestMs / 1000
    this.#longestMs = 0
    return seconds
  }
}
