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
import { parsePort } from './start.ts'

interface Flags extends AuditFlags, EgressFlags, StorageFlags {
  readonly kubeconfig?: string
  readonly port: number
  readonly bindAddress: string
  readonly advertiseAddress?: string
  readonly advertisePort?: number
  readonly register: Registration
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
    .addOption(
      new Option(
        '--register <what>',
        'what to apply in the host: Service, EndpointSlice and APIService; or only the APIService, for a Service ' +
          'kcp-apiserver that selects our pods; or nothing',
      )
        .choices(registrations)
        .default('all'),
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
  signal.addEventListener('abort', () => stopping.abort(signal.reason), { once: true })
  await using host = await openHost(flags.kubeconfig)
  const { port, bindAddress, register, advertiseAddress = ownAddress(), advertisePort } = flags
  const log = createLogger({ level: flags.logLevel })
  await using server = await startApiserver({
    host,
    port,
    bindAddress,
    advertiseAddress,
    ...(advertisePort !== undefined && { advertisePort }),
    register,
    ...auditOf(flags),
    ...storageOf(flags),
    ...egressOf(flags),
    log,
    signal: stopping.signal,
  })
  settleMemory()
  console.log(`kcp apiserver is ready on https://${advertiseAddress}:${server.port}`)
  await Promise.race([aborted(signal), server.failed])
}
