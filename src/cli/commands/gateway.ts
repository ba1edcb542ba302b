// `kcp gateway`: runs in a member whose pod network is not joined with that of other members.
import {
  boundedTransport,
  createClient,
  httpTransport,
  inClusterConfig,
  loadKubeconfig,
  untrustedServer,
} from '#client/index.ts'
import { startGateway } from '#gateway/index.ts'
import { createLogger, createMetrics, type LogLevel } from '#telemetry/index.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'

interface Flags {
  readonly kubeconfig?: string
  readonly namespace: string
  readonly port: number
  readonly healthPort: number
  readonly maxConnections: number
  readonly maxConnectionsPerLogicalCluster: number
  readonly idleSeconds: number
  readonly graceSeconds: number
  readonly logLevel: LogLevel
}

/** Milliseconds after which the nodes of the member send no new connections to a pod that ends. */
const leaveMs = 5000

/** Runs the command. */
export async function run(flags: Flags): Promise<void> {
  const signal = processSignal()
  await untilStopped(signal, () => pass(flags, signal))
}

async function pass(flags: Flags, signal: AbortSignal): Promise<void> {
  const { kubeconfig, namespace, port, healthPort, maxConnections, graceSeconds } = flags
  const source =
    kubeconfig === undefined ? await inClusterConfig() : await loadKubeconfig({ file: kubeconfig }, { trusted: true })
  await using transport = boundedTransport(httpTransport(source))
  await using gateway = await startGateway({
    client: createClient(transport, untrustedServer),
    namespace,
    port,
    healthPort,
    maxConnections,
    maxPerCluster: flags.maxConnectionsPerLogicalCluster,
    idleMs: flags.idleSeconds * 1000,
    log: createLogger({ level: flags.logLevel }),
    metrics: createMetrics(),
  })
  await gateway.ready(signal)
  console.log('kcp gateway is ready')
  settleMemory()
  await aborted(signal)
  await gateway.drain({ leaveMs, graceMs: graceSeconds * 1000 })
}
