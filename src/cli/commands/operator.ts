// `kcp operator`: the loops over our custom resources in a host.
import { Command } from 'commander'
import { loadedLate } from './loaded-late.ts'
import { logLevelOption } from './log-level-option.ts'
import { parsePort } from './parse-port.ts'
import { withTracingFlags } from './tracing-flags.ts'

export function operatorCommand(): Command {
  const command = new Command('operator')
    .description('reconcile LogicalClusters and MemberClusters of a host, place workloads, sync members')
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .option(
      '--apiserver-url <url>',
      "URL of kcp apiserver's direct listener (default: the one that it has published in the host)",
    )
    .option(
      '--host-url <url>',
      "URL at which tenants reach the host's API endpoint, for status.url (default: the one that kcp uses itself)",
    )
    .option(
      '--metrics-port <port>',
      'serve /metrics over TLS on this port, to the client certificate of Secret kcp-metrics-client (default: not served)',
      parsePort,
    )
    .option(
      '--cluster-profiles',
      'show members as ClusterProfiles (multicluster.x-k8s.io) in namespace kcp-system, once the host has that kind',
    )
    .option('--gateway-image <image>', 'the image of kcp for gateways in members (default: that of this version)')
    .addOption(logLevelOption('info'))
  return withTracingFlags(command).action(loadedLate(() => import('./run-operator.ts')))
}
