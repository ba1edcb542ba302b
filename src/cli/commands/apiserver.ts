// `kcp apiserver`: the virtual API server in front of a host.
import { Command, Option } from 'commander'
import { createLogger, type LogLevel } from '../../telemetry/index.ts'
import { auditOf, withAuditFlags, type AuditFlags } from './audit-flags.ts'
import { egressOf, withEgressFlags, type EgressFlags } from './egress-flags.ts'
import { storageOf, withStorageFlags, type StorageFlags } from './storage-flags.ts'
import { logLevelOption } from './log-level-option.ts'
import { aborted, processSignal, untilStopped } from '../process/process-signal.ts'
import { settleMemory } from '../process/settle-memory.ts'
import { registrations, type Registration } from '../roles/api-service.ts'
import { startApiserver } from '../roles/apiserver.ts'
import { openHost } from '../roles/host-installation.ts'
import { ownAddress } from '../roles/own-address.ts'
import { parseCount } from './parse-count.ts'
import { parsePort } from './start.ts'

interface Flags extends AuditFlags, EgressFlags, StorageFlags {
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

export function apiserverCommand(): Command {
  const command = new Command('apiserver')
    .description("serve logical clusters kept in a host's etcd, through the host's own API endpoint and directly")
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .option('--port <port>', 'port to listen on', parsePort, 6443)
    .option('--bind-address <address>', 'address to listen on', '0.0.0.0')
    .option(
      '--advertise-address <host>',
      "address by which the host's kube-apiserver and pods in members reach us (default: this machine's own)",
    )
    .option('--advertise-port <port>', 'port under that address, where it is not --port', parsePort)
    .option('--peer-port <port>', 'port for the other replicas of the same host; 0: any free one', parsePort, 0)
    .option(
      '--peer-address <address>',
      "address by which they reach us (default: --bind-address, or this machine's own)",
    )
    .addOption(
      new Option(
        '--register <what>',
        'what to apply in the host: Service, EndpointSlice and APIService; or only the APIService, for a Service ' +
          'kcp-apiserver that selects our pods; or nothing',
      )
        .choices(registrations)
        .default('all'),
    )
    .option(
      '--metrics-client-secret <name>',
      'keep a client certificate that may read /metrics, and nothing else, in this Secret of namespace kcp-system',
    )
    .option(
      '--storage-total <MiB>',
      'how much all logical clusters together may keep in the host, counting half a KiB per object; above it creations are ' +
        "refused (403); keep it below the quota of the host's etcd; 0: no limit",
      parseCount,
      1536,
    )
    .addOption(logLevelOption('info'))
  return withEgressFlags(withStorageFlags(withAuditFlags(command))).action(run)
}

async function run(flags: Flags): Promise<void> {
  const signal = processSignal()
  await untilStopped(signal, () => serve(flags, signal))
}

async function serve(flags: Flags, signal: AbortSignal): Promise<void> {
  const stopping = new AbortController()
  const stop = (): void => stopping.abort(signal.reason)
  signal.addEventListener('abort', stop, { once: true })
  await using host = await openHost(flags.kubeconfig)
  const { port, bindAddress, register, advertiseAddress = ownAddress(), advertisePort, peerPort } = flags
  const log = createLogger({ level: flags.logLevel })
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
    log,
    signal: stopping.signal,
  })
  settleMemory()
  console.log(`kcp apiserver is ready on https://${advertiseAddress}:${server.port}`)
  // From here on, the other replicas take over before this one stops.
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
