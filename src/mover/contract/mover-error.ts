// Typed errors of movers, each with its remedy. They cross the wire as `MoverErrorBody`.
import type { MoverErrorBody } from './contract.ts'

/** What to do about each error. `isFinal`: trying again without a change gives the same error. */
export const moverErrors = {
  TargetFull: { isFinal: true, remedy: 'expand the target volume, or move to one that is large enough' },
  QuotaExceeded: { isFinal: true, remedy: 'raise the quota of the file system of the target' },
  SourceEmpty: {
    isFinal: true,
    remedy: 'see whether the source volume is mounted and has its data; accept the empty source only if it is meant',
  },
  SourceChanged: {
    isFinal: false,
    remedy: 'find what still writes to the source volume, stop it, and run the final round again',
  },
  Unreached: { isFinal: false, remedy: 'run the round through a relay' },
  PeerLost: { isFinal: false, remedy: 'run the round again; it continues where this one ended' },
  PeerRefused: { isFinal: true, remedy: 'see that both movers have the credentials of the same move' },
  ProtocolViolated: { isFinal: true, remedy: 'see that both movers are of the same version and of nobody else' },
  SourceUnreadable: {
    isFinal: true,
    remedy: 'run the source mover as root or as the user of the files; with an input/output error, check the disk',
  },
  TargetUnwritable: {
    isFinal: true,
    remedy: 'see that the target volume is mounted for writing, and run its mover as root or as the user of the files',
  },
  CannotKeep: { isFinal: true, remedy: 'accept the named losses, or give the mover the rights that they need' },
  Unsupported: { isFinal: true, remedy: 'change what the message names; the mover cannot copy it' },
  Busy: { isFinal: false, remedy: 'wait for the round that runs, or end it' },
  Cancelled: { isFinal: false, remedy: 'run the round again; it continues where this one ended' },
  Failed: { isFinal: false, remedy: 'read the log of the mover' },
} as const

export type MoverErrorCode = keyof typeof moverErrors

export class MoverError extends Error {
  readonly code: MoverErrorCode
  /** What to do about it. */
  readonly remedy: string
  /** False: the same request may succeed later. */
  readonly isFinal: boolean
  /** The path below the volume. */
  readonly path: string | undefined

  constructor(code: MoverErrorCode, message: string, options: { cause?: unknown; path?: string } = {}) {
    super(message, { cause: options.cause })
    this.code = code
    this.remedy = moverErrors[code].remedy
    this.isFinal = moverErrors[code].isFinal
    this.path = options.path
  }
}

export function errorBody(error: unknown): MoverErrorBody {
  if (!(error instanceof MoverError)) return { code: 'Failed', message: String(error) }
  const { code, message, path } = error
  return { code, message, ...(path !== undefined && { path }) }
}

/** The error that a body names. Bodies come from other processes: unknown codes become Failed, long texts are cut. */
export function parseErrorBody(body: unknown): MoverError {
  const { code, message, path } = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>
  const known = typeof code === 'string' && Object.hasOwn(moverErrors, code) ? (code as MoverErrorCode) : 'Failed'
  const text = (value: unknown): string => (typeof value === 'string' ? value.slice(0, 2048) : '')
  return new MoverError(known, text(message), typeof path === 'string' ? { path: text(path) } : {})
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error))
}
