// `kcp apiserver`: the virtual API server in front of a host.
import { networkInterfaces } from 'node:os'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'
import { startApiserver } from '#cli/roles/apiserver.ts'
import { openHost } from '#cli/roles/host-installation.ts'
import type { Registration } from '#cli/roles/registration.ts'
import type { Worker } from '#cli/workers/index.ts'
import { createLogger, createMetrics, type LogLevel } from '#telemetry/index.ts'
import { serverStoreOf, type StoreFlags } from './store-flags.ts'
import {
  type AuditFlags,
  auditOf,
  type ConsoleFlags,
  consoleOf,
  type EgressFlags,
  egressOf,
  openTracing,
  type SignInFlags,
  type StorageFlags,
  signInOf,
  storageOf,
  type TracingFlags,
} from './flags.ts'

interface Flags extends AuditFlags, ConsoleFlags, EgressFlags, StoreFlags, SignInFlags, StorageFlags, TracingFlags {
  readonly kubeconfig?: string
  readonly port: number
  readonly bindAddress: string
  readonly advertiseAddress?: string
  readonly advertisePort?: number
  readonly peerPort: number
  readonly peerAddress?: string
  readonly workers: number
  readonly register: Registration
  readonly metricsClientSecret?: string
  readonly storageTotal: number
  readonly logLevel: LogLevel
}

/** Runs the command. */
export async function run(flags: Flags): Promise<void> {
  if (flags.workers > 1) {
    await runWorkers(flags)
    return
  }
  const signal = processSignal()
  await untilStopped(signal, () => serve(flags, signal))
}

/** Runs one of several workers if a supervisor has started this process; else supervises them. */
async function runWorkers(flags: Flags): Promise<void> {
  // Long lines of several processes would be mixed in one stream.
  const auditFile = auditOf(flags).audit?.file
  if (auditFile?.path === '-')
    throw new UsageError('--audit-log-path - is for one worker: name a file, of which each worker has its own')
  // Loaded late: one worker pays nothing.
  const { freePort, supervise, tryWorker } = await import('#cli/workers/index.ts')
  const worker = tryWorker()
  if (worker !== undefined) {
    await untilStopped(worker.signal, () => serve(flags, worker.signal, worker))
    return
  }
  const { workers: count, logLevel: level } = flags
  const { bindAddress: host } = flags
  const port = await freePort({ port: flags.port, host })
  const ready = (says: string): void => console.log(`${says} with ${count} workers`)
  const reopens = auditFile !== undefined
  await supervise({ count, port, log: createLogger({ level }), signal: processSignal(), reopens, ready })
}

async function serve(flags: Flags, signal: AbortSignal, worker?: Worker): Promise<void> {
  const stopping = new AbortController()
  const stop = (): void => stopping.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  const logOfAll = createLogger({ level: flags.logLevel })
  const log = worker === undefined ? logOfAll : logOfAll.with({ worker: worker.index })
  const own = createMetrics()
  const metrics = worker?.shared(own) ?? own
  await using _tracing = await openTracing(flags, { serviceName: 'kcp-apiserver', metrics, log })
  await using host = await openHost(flags.kubeconfig)
  const { port, bindAddress, register, advertiseAddress = ownAddress(), advertisePort, peerPort } = flags
  await using server = await startApiserver({
    host,
    port,
    bindAddress,
    advertiseAddress,
    ...(advertisePort !== undefined && { advertisePort }),
    // Each worker is a replica of its own.
    peerPort: peerPort === 0 ? 0 : peerPort + (worker?.index ?? 1) - 1,
    ...(worker && { siblings: worker.siblings }),
    peerAddress: flags.peerAddress ?? (isUnspecified(bindAddress) ? ownAddress() : bindAddress),
    register,
    ...(flags.metricsClientSecret !== undefined && { metricsClientSecret: flags.metricsClientSecret }),
    ...auditOf(flags, worker?.index),
    ...serverStoreOf(flags),
    ...signInOf(flags),
    ...consoleOf(flags),
    ...storageOf(flags),
    ...(flags.storageTotal > 0 && { totalStorageBytes: flags.storageTotal * 1024 * 1024 }),
    ...egressOf(flags),
    metrics,
    log,
    signal: stopping.signal,
  })
  settleMemory()
  const says = `kcp apiserver is ready on https://${advertiseAddress}:${server.port}`
  if (worker === undefined) console.log(says)
  else worker.ready(says, server)
  // From here on, a signal first hands our logical clusters over to the other replicas, then stops this one.
  signal.removeEventListener('abort', stop)
  try {
    await Promise.race([aborted(signal), server.failed])
    await server.leave()
  } finally {
    stop()
  }
}

function isUnspecified(address: string): boolean {
  return address === '0.0.0.0' || address === '::'
}

/** The first non-loopback address; physical networks come before bridges and tunnels. */
function ownAddress(): string {
  const found: { address: string; isVirtual: boolean }[] = []
  for (const [name, addresses = []] of Object.entries(networkInterfaces()))
    for (const { address, family, internal } of addresses)
      if (!internal && family === 'IPv4')
        found.push({ address, isVirtual: /^(docker|br-|veth|cni|virbr|tun|kcp)/.test(name) })
  const best = found.find(({ isVirtual }) => !isVirtual) ?? found[0]
  if (best === undefined) throw new ExitError('this machine has no address but the loopback: give --advertise-address')
  return best.address
}
