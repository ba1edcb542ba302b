// The last audit events of a logical cluster in bounded memory. Readers ask by position, so a slow reader holds nothing.
import { Buffer } from 'node:buffer'
import { randomBytes } from 'node:crypto'
import { abortable } from '#async/index.ts'
import { auditPositionAnnotation } from '#crds/index.ts'
import type { AuditEvent } from '#virtualapi/request/request-audit.ts'

/** A position in one ring: positions of a ring of another life say nothing. */
export interface Position {
  readonly life: string
  readonly number: number
}

/** Lines and the position after them. `isGone`: events after the asked position are not there any more. */
export interface ReadLines {
  readonly lines: readonly Buffer[]
  readonly next: Position
  readonly isGone: boolean
}

/** Memory that a line takes besides its bytes. */
const lineBytes = 160
/** An event with more bytes loses its bodies; if it is still too long, it is dropped. As kube-apiserver's bound. */
const maxEventBytes = 100 * 1024
/** Events of clients without an identity that are kept in a minute: strangers must not push out what users have done. */
const anonymousPerMinute = 60

export class AuditRing {
  readonly #maxBytes: () => number
  readonly #life = randomBytes(4).toString('hex')
  /** Lines from `#first` on. Older ones are at the front until the list is cut. */
  #lines: Buffer[] = []
  #gone = 0
  /** The number of `#lines[#gone]`. */
  #first = 1
  #bytes = 0
  /** True if there will be no more events. */
  isClosed = false
  #grown = Promise.withResolvers<undefined>()
  #anonymous = { from: -Infinity, count: 0 }

  /** `maxBytes`: the memory that the ring may take at this time. */
  constructor(maxBytes: () => number) {
    this.#maxBytes = maxBytes
  }

  get bytes(): number {
    return this.#bytes
  }

  /** The number of the last event. */
  get end(): number {
    return this.#first + this.#lines.length - this.#gone - 1
  }

  /** Keeps an event. Returns false if it was dropped. */
  push(event: AuditEvent, nowMs: number): boolean {
    if (event.isAnonymous && !this.#takesAnonymous(nowMs)) return false
    const number = this.end + 1
    const text = event.textWithin(maxEventBytes, {
      [auditPositionAnnotation]: positionText({ life: this.#life, number }),
    })
    if (text === undefined) return false
    const line = Buffer.from(`${text}\n`)
    this.#lines.push(line)
    this.#bytes += line.length + lineBytes
    this.trim()
    this.#grown.resolve(undefined)
    this.#grown = Promise.withResolvers()
    return true
  }

  /** Forgets the oldest events as far as they have no room. */
  trim(): void {
    const maxBytes = this.#maxBytes()
    while (this.#bytes > maxBytes && this.#lines.length - this.#gone > 1) this.#dropFirst()
  }

  #dropFirst(): void {
    const line = this.#lines[this.#gone]
    if (line === undefined) return
    this.#lines[this.#gone] = Buffer.alloc(0)
    this.#gone += 1
    this.#first += 1
    this.#bytes -= line.length + lineBytes
    if (this.#gone < 1024 || this.#gone * 2 < this.#lines.length) return
    this.#lines = this.#lines.slice(this.#gone)
    this.#gone = 0
  }

  /** Forgets everything, and ends its readers. */
  close(): void {
    this.isClosed = true
    this.#lines = []
    this.#gone = 0
    this.#bytes = 0
    this.#grown.resolve(undefined)
  }

  /** The events after a position, `maxBytes` of them and at least one. Default: from the oldest one on. */
  read(after: Position | undefined, maxBytes: number): ReadLines {
    const isOther = after !== undefined && after.life !== this.#life
    const wanted = after === undefined ? this.#first : after.number + 1
    const isGone = isOther || wanted < this.#first || wanted > this.end + 1
    const from = isGone ? this.#first : wanted
    const lines: Buffer[] = []
    let bytes = 0
    for (let i = this.#gone + from - this.#first; i < this.#lines.length && bytes < maxBytes; i++) {
      const line = this.#lines[i]
      if (line === undefined) break
      lines.push(line)
      bytes += line.length
    }
    return { lines, next: { life: this.#life, number: from + lines.length - 1 }, isGone }
  }

  /** Resolves when there are events that were not there before the call. Rejects with signal.reason. */
  grown(signal: AbortSignal): Promise<undefined> {
    return abortable(this.#grown.promise, signal)
  }

  #takesAnonymous(nowMs: number): boolean {
    if (nowMs - this.#anonymous.from >= 60_000) this.#anonymous = { from: nowMs, count: 0 }
    this.#anonymous.count += 1
    return this.#anonymous.count <= anonymousPerMinute
  }
}

export function positionText({ life, number }: Position): string {
  return `${life}-${String(number)}`
}

/** The position in a text; undefined if it is none. */
export function tryPosition(text: string): Position | undefined {
  const [, life, number] = /^([0-9a-f]{8})-(\d{1,15})$/.exec(text) ?? []
  return life === undefined ? undefined : { life, number: Number(number) }
}
