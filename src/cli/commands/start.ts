// `kcp start`: everything in one process on an embedded store.
import { Command } from 'commander'
import { withAuditFlags } from './audit-flags.ts'
import { withEgressFlags } from './egress-flags.ts'
import { loadedLate } from './loaded-late.ts'
import { logLevelOption } from './log-level-option.ts'
import { parseHost } from './parse-host.ts'
import { parsePort } from './parse-port.ts'
import { withStorageFlags } from './storage-flags.ts'
import { withTracingFlags } from './tracing-flags.ts'
import { withRequired } from './with-required.ts'

export function startCommand(): Command {
  const start = new Command('start').description(
    'run everything in one process on an embedded store; no Kubernetes needed',
  )
  const command = withRequired(start, '--root-dir <dir>', 'directory of all data; created if missing')
    .option('--port <port>', 'port to listen on', parsePort, 6443)
    .option(
      '--bind-address <address>',
      'address to listen on; use 0.0.0.0 if pods in members must reach it',
      '127.0.0.1',
    )
    .option(
      '--advertise-address <host>',
      'host name or address by which pods in members reach this server (default: the bind address)',
      parseHost,
    )
    .option(
      '--metrics-client-secret <name>',
      'write a client certificate that may only read /metrics into this Secret, and renew it; the Secret is in namespace kcp-system of the cluster that kcp runs in (or of KUBECONFIG)',
    )
    .option('--gateway-image <image>', 'the image of kcp for gateways in members (default: that of this version)')
    .addOption(logLevelOption('warn'))
  return withTracingFlags(withEgressFlags(withStorageFlags(withAuditFlags(command)))).action(
    loadedLate(() => import('./run-start.ts')),
  )
}
