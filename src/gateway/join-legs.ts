// Passes bytes both ways between two connections until both have ended.
import type { Leg } from './leg.ts'

export interface JoinOptions {
  /** Without a byte in either direction for so long, both are reset. */
  readonly idleMs: number
  /** Bytes that came from `one`, and from `other`. */
  readonly onBytes: (fromOne: number, fromOther: number) => void
}

/**
 * Resolves when both are closed. The end of one direction ends that direction of the other side only; a reset of one side becomes
 * a reset of the other.
 */
export function joinLegs(one: Leg, other: Leg, { idleMs, onBytes }: JoinOptions): Promise<void> {
  const reset = (): void => {
    one.reset()
    other.reset()
  }
  one.stream.on('data', (chunk: Buffer) => onBytes(chunk.length, 0))
  other.stream.on('data', (chunk: Buffer) => onBytes(0, chunk.length))
  one.stream.pipe(other.stream)
  other.stream.pipe(one.stream)
  // All bytes pass both sides: the timer of one is enough.
  one.stream.setTimeout(idleMs, reset)
  return Promise.all([closed(one, reset), closed(other, reset)]).then(() => undefined)
}

function closed({ stream }: Leg, reset: () => void): Promise<void> {
  return new Promise((resolve) => {
    const onClose = (): void => {
      if (!stream.readableEnded || !stream.writableFinished) reset()
      resolve()
    }
    stream.on('error', reset)
    if (stream.closed) onClose()
    else stream.once('close', onClose)
  })
}
