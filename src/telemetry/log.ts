// The log: a constant message plus keys, one line each, on pino. Never a token or Secret data.
import pino from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'silent'
export type LogKeys = Readonly<Record<string, unknown>>

/** A structured log. `message` is constant; what varies goes into `keys`; an Error goes under the key `error`. */
export interface Logger {
  debug(message: string, keys?: LogKeys): void
  info(message: string, keys?: LogKeys): void
  warn(message: string, keys?: LogKeys): void
  error(message: string, keys?: LogKeys): void
  /** The same log with these keys on every line. */
  with(keys: LogKeys): Logger
}

/** What a log is written to: process.stderr, or anything that takes whole lines. */
export interface LogDestination {
  write(line: string): unknown
}

export interface LoggerOptions {
  /** Default `info`. */
  readonly level?: LogLevel
  /** Default process.stderr. */
  readonly destination?: LogDestination
  /** `json`: one JSON object per line; `text`: short lines for a person. Default: text on a terminal, else json. */
  readonly format?: 'json' | 'text'
}

/** Creates the program's log. Lines are written synchronously, so that none is lost when the process ends. */
export function createLogger({ level = 'info', destination = process.stderr, format }: LoggerOptions = {}): Logger {
  const text = format === undefined ? 'isTTY' in destination && destination.isTTY === true : format === 'text'
  const sink = text ? { write: (line: string) => destination.write(textLine(line)) } : destination
  const base = pino(
    {
      level,
      base: null,
      messageKey: 'message',
      timestamp: () => `,"time":"${new Date().toISOString()}"`,
      formatters: { level: (label) => ({ level: label }) },
    },
    { write: (line: string) => void sink.write(line) },
  )
  return wrap(base)
}

/** A log that drops everything. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  with: () => silentLogger,
}

function wrap(log: pino.Logger): Logger {
  return {
    debug: (message, keys) => log.debug(readable(keys), message),
    info: (message, keys) => log.info(readable(keys), message),
    warn: (message, keys) => log.warn(readable(keys), message),
    error: (message, keys) => log.error(readable(keys), message),
    with: (keys) => wrap(log.child(readable(keys))),
  }
}

/** Errors encode to `{}` in JSON; here they become their message, code, stack and causes. */
function readable(keys: LogKeys = {}): Record<string, unknown> {
  const out: Record<string, unknown> = {}
  for (const [key, value] of Object.entries(keys)) out[key] = value instanceof Error ? describeError(value) : value
  return out
}

const maxCauses = 5

function describeError(error: Error, depth = 0): Record<string, unknown> {
  const out: Record<string, unknown> = { message: error.message, name: error.name }
  for (const field of ['code', 'reason'] as const) {
    const value: unknown = (error as unknown as Record<string, unknown>)[field]
    if (typeof value === 'string' || typeof value === 'number') out[field] = value
  }
  // The stack of a Status error from a server says nothing about its cause.
  if (error.name !== 'StatusError' && error.name !== 'AbortError') out['stack'] = error.stack
  if (error.cause instanceof Error && depth < maxCauses) out['cause'] = describeError(error.cause, depth + 1)
  return out
}

function textLine(line: string): string {
  // eslint-disable-next-line no-restricted-properties -- a line that this file wrote
  const { level, time, message, ...keys } = JSON.parse(line) as Record<string, unknown>
  const rest = Object.entries(keys).map(([key, value]) => ` ${key}=${textValue(value)}`)
  const clock = typeof time === 'string' ? time.slice(11, 23) : ''
  return `${clock} ${String(level).toUpperCase().padEnd(5)} ${String(message)}${rest.join('')}\n`
}

function textValue(value: unknown): string {
  if (typeof value === 'string') return /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)
  if (typeof value === 'object' && value !== null && 'message' in value) {
    const cause = 'cause' in value ? ` (${textValue(value.cause)})` : ''
    return JSON.stringify(value.message) + cause
  }
  return JSON.stringify(value)
}
