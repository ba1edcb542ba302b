// `kcp operator`: the loops over our custom resources in a host.
import { createLogger, createMetrics, type Logger, type LogLevel, type Metrics } from '#telemetry/index.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'
import { listenForScrapes, type MetricsListener } from '#cli/roles/metrics-listener.ts'
import { installationKeys, installationNamespace, openHost, type Host } from '#cli/roles/host-installation.ts'
import { startOperatorRole } from '#cli/roles/operator.ts'
import { openTracing, type TracingFlags, type VolumeMoveFlags, volumeMovesOf } from './flags.ts'

interface Flags extends TracingFlags, VolumeMoveFlags {
  readonly kubeconfig?: string
  readonly apiserverUrl?: string
  readonly hostUrl?: string
  readonly metricsPort?: number
  readonly clusterProfiles?: boolean
  readonly gatewayImage?: string
  readonly snapshotDirectory?: string
  readonly logLevel: LogLevel
}

/** Runs the command. */
export async function run(flags: Flags): Promise<void> {
  const signal = processSignal()
  await untilStopped(signal, () => operate(flags, signal))
}

async function operate(flags: Flags, signal: AbortSignal): Promise<void> {
  const { kubeconfig, apiserverUrl, hostUrl, metricsPort, clusterProfiles, gatewayImage, snapshotDirectory, logLevel } =
    flags
  const stopping = new AbortController()
  signal.addEventListener('abort', () => stopping.abort(signal.reason), { once: true })
  const log = createLogger({ level: logLevel })
  const metrics = createMetrics()
  await using _tracing = await openTracing(flags, { serviceName: 'kcp-operator', metrics, log })
  await using host = await openHost(kubeconfig)
  await using _scrapes =
    metricsPort === undefined ? undefined : await serveMetrics(metricsPort, { host, metrics, log, signal })
  const options = {
    host,
    log,
    metrics,
    signal: stopping.signal,
    ...(apiserverUrl === undefined ? {} : { apiserverUrl }),
    ...(hostUrl === undefined ? {} : { hostUrl }),
    ...(clusterProfiles === undefined ? {} : { clusterProfiles }),
    ...(gatewayImage === undefined ? {} : { gatewayImage }),
    ...(snapshotDirectory === undefined ? {} : { snapshotDirectory }),
    ...volumeMovesOf(flags),
  }
  await using operator = await startOperatorRole(options)
  // A process that was stopped while it stood by has never led.
  if (!signal.aborted) console.log('kcp operator is ready')
  settleMemory()
  await Promise.race([aborted(signal), operator.done])
}

interface Serving {
  readonly host: Host
  readonly metrics: Metrics
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Serves metrics before the process holds the Lease, so that a process that stands by has metrics, too. */
async function serveMetrics(port: number, { host, metrics, log, signal }: Serving): Promise<MetricsListener> {
  const { pki } = await installationKeys(host.client, signal, { keepsServing: false })
  const hosts = [`kcp-operator.${installationNamespace}.svc`]
  return listenForScrapes({ metrics, port, hosts, pki, log })
}
