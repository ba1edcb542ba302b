// `kcp apiserver`: the virtual API server in front of a host.
import { Command, Option } from 'commander'
import { registrations } from '../roles/registration.ts'
import { withAuditFlags } from './audit-flags.ts'
import { withEgressFlags } from './egress-flags.ts'
import { loadedLate } from './loaded-late.ts'
import { logLevelOption } from './log-level-option.ts'
import { parseCount } from './parse-count.ts'
import { parsePort } from './parse-port.ts'
import { withStorageFlags } from './storage-flags.ts'
import { withTracingFlags } from './tracing-flags.ts'

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
  return withTracingFlags(withEgressFlags(withStorageFlags(withAuditFlags(command)))).action(
    loadedLate(() => import('./run-apiserver.ts')),
  )
}
