// `kcp apiserver`: the virtual API server in front of a host.
import { networkInterfaces } from 'node:os'
import { ExitError } from '#cli/process/exit-error.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'
import { startApiserver } from '#cli/roles/apiserver.ts'
import { openHost } from '#cli/roles/host-installation.ts'
import type { Registration } from '#cli/roles/registration.ts'
import { createLogger, createMetrics, type LogLevel } from '#telemetry/index.ts'
import { etcdOf, type EtcdFlags } from './etcd-flags.ts'
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

interface Flags extends AuditFlags, ConsoleFlags, EgressFlags, EtcdFlags, SignInFlags, StorageFlags, TracingFlags {
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
    ...etcdOf(flags),
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
