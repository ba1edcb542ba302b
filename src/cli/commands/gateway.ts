// `kcp gateway`: runs in a member whose pod network is not joined with that of other members.
import { Command } from 'commander'
import { loadedLate } from './loaded-late.ts'
import { logLevelOption } from './log-level-option.ts'
import { parseCount } from './parse-count.ts'
import { parsePort } from './parse-port.ts'

/** The command `gateway`. */
export function gatewayCommand(): Command {
  return new Command('gateway')
    .description('pass connections between the Services of this member and those of others (kcp runs it in members)')
    .option('--kubeconfig <file>', 'the member (default: the pod we run in)')
    .option('--namespace <namespace>', 'with the Secret kcp-gateway and the ConfigMaps of peers', 'kcp-system')
    .option('--port <port>', 'port for the gateways of other members', parsePort, 8443)
    .option('--health-port <port>', 'port of /readyz, /livez and /metrics, over HTTP', parsePort, 8080)
    .option('--max-connections <count>', 'open at once; more are refused', parseCount, 20_000)
    .option(
      '--max-connections-per-logical-cluster <count>',
      'open at once to Services of one logical cluster; more are refused',
      parseCount,
      5000,
    )
    .option('--idle-seconds <seconds>', 'a connection without a byte for so long is reset', parseCount, 3600)
    .option('--grace-seconds <seconds>', 'how long open connections may go on when we are stopped', parseCount, 30)
    .addOption(logLevelOption('info'))
    .action(loadedLate(() => import('./run-gateway.ts')))
}
