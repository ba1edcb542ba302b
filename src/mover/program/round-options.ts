import { MoverError, type RoundOptions } from '#mover/contract/index.ts'
import { parseAddress } from '#mover/wire/peer-connection.ts'

/** Reads the options of a round from a request. Throws ProtocolViolated. */
export function parseRoundOptions(body: unknown): RoundOptions {
  const { mode, source, bandwidth, allowEmpty, requireAll } = recordOf(body, 'options')
  if (mode !== 'copy' && mode !== 'final') throw wrong('mode must be copy or final')
  if (
    bandwidth !== undefined &&
    !(typeof bandwidth === 'number' && bandwidth >= 1024 && Number.isSafeInteger(bandwidth))
  )
    throw wrong('bandwidth must be a whole number of bytes per second, at least 1024')
  for (const flag of [allowEmpty, requireAll])
    if (flag !== undefined && typeof flag !== 'boolean') throw wrong('allowEmpty and requireAll must be booleans')
  return {
    mode,
    source: parseSource(source),
    ...(bandwidth !== undefined && { bandwidth }),
    ...(allowEmpty === true && { allowEmpty }),
    ...(requireAll === true && { requireAll }),
  }
}

function parseSource(source: unknown): RoundOptions['source'] {
  const { address, relay } = recordOf(source, 'source')
  if (relay === true && address === undefined) return { relay: true }
  if (typeof address !== 'string' || parseAddress(address) === undefined || relay !== undefined)
    throw wrong('source must have address IP:PORT, or relay true')
  return { address }
}

function recordOf(value: unknown, what: string): Readonly<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw wrong(`${what} must be an object`)
  return value as Readonly<Record<string, unknown>>
}

function wrong(message: string): MoverError {
  return new MoverError('ProtocolViolated', `the request is not valid: ${message}`)
}
