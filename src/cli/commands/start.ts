// `kcp start`: everything in one process on an embedded store.
import { Command, InvalidArgumentError } from 'commander'
import { createLogger, type LogLevel } from '../../telemetry/index.ts'
import { auditOf, withAuditFlags, type AuditFlags } from './audit-flags.ts'
import { egressOf, withEgressFlags, type EgressFlags } from './egress-flags.ts'
import { storageOf, withStorageFlags, type StorageFlags } from './storage-flags.ts'
import { logLevelOption } from './log-level-option.ts'
import { withRequired } from './with-required.ts'
import { aborted, processSignal } from '../process/process-signal.ts'
import { settleMemory } from '../process/settle-memory.ts'
import { startEmbedded } from '../roles/embedded.ts'

interface Flags extends AuditFlags, EgressFlags, StorageFlags {
  readonly rootDir: string
  readonly port: number
  readonly bindAddress: string
  readonly advertiseAddress?: string
  readonly metricsClientSecret?: string
  readonly logLevel: LogLevel
}

export function startCommand(): Command {
  const start = new Command('start').description(
    'run everything in one process on an embedded store; no Kubernetes needed',
  )
  const command = withRequired(start, '--root-dir <dir>', 'directory of all data; created if missing')
    .option('--port <port>', 'port to listen on', parsePort, 6443)
    .option('--bind-address <address>', 'address to listen on; 0.0.0.0 for pods in members to reach it', '127.0.0.1')
    .option(
      '--advertise-address <host>',
      'host name or address by which pods in members reach this server (default: the bind address)',
    )
    .option(
      '--metrics-client-secret <name>',
      'keep a client certificate that may read /metrics, and nothing else, in this Secret of namespace kcp-system of the cluster we run in (or of KUBECONFIG)',
    )
    .addOption(logLevelOption('warn'))
  return withEgressFlags(withStorageFlags(withAuditFlags(command))).action(run)
}

async function run(flags: Flags): Promise<void> {
  const started = performance.now()
  const signal = processSignal()
  const log = createLogger({ level: flags.logLevel })
  const { rootDir, port, bindAddress } = flags
  const advertiseAddress = flags.advertiseAddress ?? (bindAddress === '0.0.0.0' ? '127.0.0.1' : bindAddress)
  const stopping = new AbortController()
  await using kcp = await startEmbedded({
    rootDir,
    port,
    bindAddress,
    advertiseAddress,
    ...auditOf(flags),
    ...storageOf(flags),
    ...egressOf(flags),
    ...(flags.metricsClientSecret !== undefined && { metricsClientSecret: flags.metricsClientSecret }),
    log,
    signal: stopping.signal,
  })
  settleMemory()
  console.log(welcome(kcp.adminKubeconfig, rootDir, performance.now() - started))
  try {
    await Promise.race([aborted(signal), kcp.failed])
  } finally {
    stopping.abort(signal.reason)
  }
}

function welcome(kubeconfig: string, rootDir: string, elapsedMs: number): string {
  return `kcp is ready after ${(elapsedMs / 1000).toFixed(2)} s. Try:

  export KUBECONFIG=${kubeconfig}
  kubectl create -f - <<EOF
  apiVersion: kcp.dev/v1alpha1
  kind: LogicalCluster
  metadata: {name: acme}
  EOF
  kubectl wait --for=condition=Ready lc/acme
  bin/kcp kubeconfig acme --root-dir ${rootDir} > acme.kubeconfig
  kubectl --kubeconfig acme.kubeconfig get namespaces

Register a cluster to run pods:  bin/kcp member join NAME --kubeconfig FILE --root-dir ${rootDir}
Stop with Ctrl-C; the data stays in ${rootDir}.`
}

export function parsePort(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 0 || port > 65535)
    throw new InvalidArgumentError('a port is a number from 0 to 65535')
  return port
}
