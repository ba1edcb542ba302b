// Two movers in this process over a loopback, with the client of control.
import { once } from 'node:events'
import { connect } from 'node:net'
import {
  createMoverControl,
  issueMoverCredentials,
  type Dial,
  type MoverControl,
  type Party,
  type PartyCredentials,
  type RoundOptions,
  type RoundProgress,
  type RoundResult,
} from '#mover/index.ts'
import { startMover, type Mover } from '#mover/program/index.ts'
import { silentLogger } from '#telemetry/index.ts'

export interface MoverPair extends AsyncDisposable {
  readonly credentials: Readonly<Record<Party, PartyCredentials>>
  readonly source: MoverControl
  readonly target: MoverControl
  readonly ports: { readonly source: number; readonly target: number }
  /** Runs a round through the source's address. */
  round(options?: Partial<RoundOptions>, onProgress?: (progress: RoundProgress) => void): Promise<RoundResult>
}

export interface MoverPairOptions {
  readonly source: string
  readonly target: string
  readonly block?: boolean
  readonly silenceMs?: number
}

export const dialPort =
  (port: number): Dial =>
  async (signal) => {
    const socket = connect({ host: '127.0.0.1', port })
    await once(socket, 'connect', { signal })
    return socket
  }

export async function startMoverPair({
  source,
  target,
  block = false,
  silenceMs,
}: MoverPairOptions): Promise<MoverPair> {
  const credentials = await issueMoverCredentials('move-1')
  const shared = { block, host: '127.0.0.1', port: 0, log: silentLogger, ...(silenceMs !== undefined && { silenceMs }) }
  const movers: readonly [Mover, Mover] = [
    await startMover({ ...shared, role: 'source', volume: source, credentials: credentials.source }),
    await startMover({ ...shared, role: 'target', volume: target, credentials: credentials.target }),
  ]
  const ports = { source: movers[0].port, target: movers[1].port }
  const control = (role: 'source' | 'target'): MoverControl =>
    createMoverControl({ credentials: credentials.control, role, dial: dialPort(ports[role]) })
  const pair = { source: control('source'), target: control('target') }
  const never = new AbortController().signal
  return {
    ...pair,
    credentials,
    ports,
    round: (options = {}, onProgress = () => undefined) =>
      pair.target.round(
        { mode: 'copy', source: { address: `127.0.0.1:${ports.source}` }, ...options },
        onProgress,
        never,
      ),
    [Symbol.asyncDispose]: async () => {
      for (const mover of movers) await mover[Symbol.asyncDispose]()
    },
  }
}
