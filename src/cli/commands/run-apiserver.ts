// `kcp apiserver`: the virtual API server in front of a host.
import { createLogger, createMetrics, type LogLevel } from '#telemetry/index.ts'
import { auditOf, type AuditFlags } from './audit-flags.ts'
import { egressOf, type EgressFlags } from './egress-flags.ts'
import { openTracing } from './open-tracing.ts'
import { storageOf, type StorageFlags } from './storage-flags.ts'
import type { TracingFlags } from './tracing-flags.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'
import type { Registration } from '#cli/roles/registration.ts'
import { startApiserver } from '#cli/roles/apiserver.ts'
import { openHost } from '#cli/roles/host-installation.ts'
import { ownAddress } from '#cli/roles/own-address.ts'

interface Flags extends AuditFlags, EgressFlags, StorageFlags, TracingFlags {
  readonly kubeconfig?: string
  readonly port: number
  readonly bindAddress: string
  readonly advertiseAddress?: string
  readonly advertisePort?: number
  readonly peerPort: number
  readonly peerAddress?: string
  readonly register: Registration
  readonly metricsClientSecret?: string
  readonly storageTotal: number
  readonly logLevel: LogLevel
}

/** Runs the command. */
export async function run(flags: Flags): Promise<void> {
  const signal = processSignal()
  await untilStopped(signal, () => serve(flags, signal))
}

async function serve(flags: Flags, signal: AbortSignal): Promise<void> {
  const stopping = new AbortController()
  const stop = (): void => stopping.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  const log = createLogger({ level: flags.logLevel })
  const metrics = createMetrics()
  await using _tracing = await openTracing(flags, { serviceName: 'kcp-apiserver', metrics, log })
  await using host = await openHost(flags.kubeconfig)
  const { port, bindAddress, register, advertiseAddress = ownAddress(), advertisePort, peerPort } = flags
  await using server = await startApiserver({
    host,
    port,
    bindAddress,
    advertiseAddress,
    ...(advertisePort !== undefined && { advertisePort }),
    peerPort,
    peerAddress: flags.peerAddress ?? (isUnspecified(bindAddress) ? ownAddress() : bindAddress),
    register,
    ...(flags.metricsClientSecret !== undefined && { metricsClientSecret: flags.metricsClientSecret }),
    ...auditOf(flags),
    ...storageOf(flags),
    ...(flags.storageTotal > 0 && { totalStorageBytes: flags.storageTotal * 1024 * 1024 }),
    ...egressOf(flags),
    metrics,
    log,
    signal: stopping.signal,
  })
  settleMemory()
  console.log(`kcp apiserver is ready on https://${advertiseAddress}:${server.port}`)
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
