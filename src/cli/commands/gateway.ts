// `kcp gateway`: runs in a member whose pod network is not joined with that of other members.
import { Command } from 'commander'
import { loadedLate } from './loaded-late.ts'
import { logLevelOption } from './log-level-option.ts'
import { parseCount } from './parse-count.ts'
import { parsePort } from './parse-port.ts'

/** The command `gateway`. */
export function gatewayCommand(): Command {
  return new Command('gateway')
    .description('forward connections between this member and Services of other members (kcp runs it in members)')
    .option('--kubeconfig <file>', 'the member (default: the pod we run in)')
    .option(
      '--namespace <namespace>',
      'namespace with the Secret kcp-gateway and the ConfigMaps of peers',
      'kcp-system',
    )
    .option('--port <port>', 'port for the gateways of other members', parsePort, 8443)
    .option('--health-port <port>', 'port of /readyz, /livez and /metrics, over HTTP', parsePort, 8080)
    .option(
      '--max-connections <count>',
      'how many connections may be open at a time; more are refused',
      parseCount,
      20_000,
    )
    .option(
      '--max-connections-per-logical-cluster <count>',
      'how many of them may be to Services of one logical cluster; more are refused',
      parseCount,
      5000,
    )
    .option('--idle-seconds <seconds>', 'after how long without data a connection is reset', parseCount, 3600)
    .option(
      '--grace-seconds <seconds>',
      'how long open connections may continue after the gateway was told to stop',
      parseCount,
      30,
    )
    .addOption(logLevelOption('info'))
    .action(loadedLate(() => import('./run-gateway.ts')))
}
