// `kcp apiserver`: the virtual API server in front of a host.
import { Command, Option } from 'commander'
import { registrations } from '#cli/roles/registration.ts'
import { withAuditFlags } from './audit-flags.ts'
import { withEgressFlags } from './egress-flags.ts'
import { loadedLate } from './loaded-late.ts'
import { logLevelOption } from './log-level-option.ts'
import { parseCount } from './parse-count.ts'
import { parseHost } from './parse-host.ts'
import { parsePort } from './parse-port.ts'
import { withStorageFlags } from './storage-flags.ts'
import { withTracingFlags } from './tracing-flags.ts'

export function apiserverCommand(): Command {
  const command = new Command('apiserver')
    .description(
      "serve logical clusters that are stored in a host's etcd, through the host's own API endpoint and directly",
    )
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .option('--port <port>', 'port to listen on', parsePort, 6443)
    .option('--bind-address <address>', 'address to listen on', '0.0.0.0')
    .option(
      '--advertise-address <host>',
      "address at which the host's kube-apiserver and pods in members reach this process (default: this machine's own)",
      parseHost,
    )
    .option('--advertise-port <port>', 'port at that address, if it is not --port', parsePort)
    .option('--peer-port <port>', 'port for the other replicas of kcp apiserver; 0: any free one', parsePort, 0)
    .option(
      '--peer-address <address>',
      "address at which the other replicas reach this one (default: --bind-address, or this machine's own)",
    )
    .addOption(
      new Option(
        '--register <what>',
        'what to apply in the host. all: Service, EndpointSlice and APIService; apiservice: only the APIService, if a Service ' +
          'kcp-apiserver selects the pods of kcp; none: nothing',
      )
        .choices(registrations)
        .default('all'),
    )
    .option(
      '--metrics-client-secret <name>',
      'write a client certificate that may only read /metrics into this Secret in namespace kcp-system, and renew it',
    )
    .option(
      '--storage-total <MiB>',
      'how much all logical clusters together may store in the host, where an object counts half a KiB more than its size; above it creations are ' +
        "refused (403); keep it below the quota of the host's etcd; 0: no limit",
      parseCount,
      1536,
    )
    .addOption(logLevelOption('info'))
  return withTracingFlags(withEgressFlags(withStorageFlags(withAuditFlags(command)))).action(
    loadedLate(() => import('./run-apiserver.ts')),
  )
}
