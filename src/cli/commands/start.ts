// `kcp start`: everything in one process on an embedded store.
import { createLogger, createMetrics, type LogLevel } from '#telemetry/index.ts'
import {
  type AuditFlags,
  auditOf,
  type ConsoleFlags,
  consoleOf,
  type EgressFlags,
  egressOf,
  openTracing,
  type StorageFlags,
  storageOf,
  type TracingFlags,
} from './flags.ts'
import { aborted, processSignal } from '#cli/process/process-signal.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'
import { startEmbedded } from '#cli/roles/embedded.ts'

interface Flags extends AuditFlags, ConsoleFlags, EgressFlags, StorageFlags, TracingFlags {
  readonly rootDir: string
  readonly port: number
  readonly bindAddress: string
  readonly advertiseAddress?: string
  readonly metricsClientSecret?: string
  readonly gatewayImage?: string
  readonly logLevel: LogLevel
}

/** Runs the command. */
export async function run(flags: Flags): Promise<void> {
  const started = performance.now()
  const signal = processSignal()
  const log = createLogger({ level: flags.logLevel })
  const metrics = createMetrics()
  await using _tracing = await openTracing(flags, { serviceName: 'kcp', metrics, log })
  const { rootDir, port, bindAddress } = flags
  const advertiseAddress = flags.advertiseAddress ?? (bindAddress === '0.0.0.0' ? '127.0.0.1' : bindAddress)
  const stopping = new AbortController()
  await using kcp = await startEmbedded({
    rootDir,
    port,
    bindAddress,
    advertiseAddress,
    ...auditOf(flags),
    ...consoleOf(flags),
    ...storageOf(flags),
    ...egressOf(flags),
    ...(flags.metricsClientSecret !== undefined && { metricsClientSecret: flags.metricsClientSecret }),
    ...(flags.gatewayImage !== undefined && { gatewayImage: flags.gatewayImage }),
    metrics,
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

  bin/kcp create acme --root-dir ${rootDir}
  bin/kcp connect acme --root-dir ${rootDir} -- kubectl get namespaces

As the admin of all:             export KUBECONFIG=${kubeconfig}
Register a cluster to run pods:  bin/kcp member join NAME --kubeconfig FILE --root-dir ${rootDir}
Stop with Ctrl-C; the data stays in ${rootDir}.`
}
