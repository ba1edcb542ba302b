// `kcp mover`: copies one volume, as the source or as the target of a move.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createLogger, type LogLevel } from '#telemetry/index.ts'
import type { MoverRole, PartyCredentials } from '#mover/index.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import type { ListenAddress } from './flags.ts'

interface Flags {
  readonly role: MoverRole
  readonly volume: string
  readonly block?: boolean
  readonly credentials: string
  readonly listen: ListenAddress
  readonly logLevel: LogLevel
}

/** Runs the command. */
export async function run({ role, volume, block = false, credentials, listen, logLevel }: Flags): Promise<void> {
  const signal = processSignal()
  await untilStopped(signal, async () => {
    // The C library is loaded only here.
    const { startMover } = await import('#mover/program/index.ts')
    const log = createLogger({ level: logLevel })
    await using mover = await startMover({
      role,
      volume,
      block,
      credentials: readCredentials(credentials),
      ...listen,
      log,
    })
    console.log(`kcp mover is ready on port ${mover.port}`)
    await aborted(signal)
  })
}

function readCredentials(folder: string): PartyCredentials {
  const read = (name: string): string => readFileSync(join(folder, name), 'utf8')
  return { 'tls.crt': read('tls.crt'), 'tls.key': read('tls.key'), 'ca.crt': read('ca.crt') }
}
