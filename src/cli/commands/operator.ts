// `kcp operator`: the loops over our custom resources in a host.
import { Command } from 'commander'
import { createLogger, createMetrics, type Logger, type LogLevel, type Metrics } from '../../telemetry/index.ts'
import { logLevelOption } from './log-level-option.ts'
import { aborted, processSignal, untilStopped } from '../process/process-signal.ts'
import { settleMemory } from '../process/settle-memory.ts'
import { listenForScrapes, type MetricsListener } from '../roles/metrics-listener.ts'
import { installationKeys, installationNamespace, openHost, type Host } from '../roles/host-installation.ts'
import { startOperatorRole } from '../roles/operator.ts'
import { parsePort } from './start.ts'

interface Flags {
  readonly kubeconfig?: string
  readonly apiserverUrl?: string
  readonly hostUrl?: string
  readonly metricsPort?: number
  readonly clusterProfiles?: boolean
  readonly logLevel: LogLevel
}

export function operatorCommand(): Command {
  return new Command('operator')
    .description('reconcile LogicalClusters and MemberClusters of a host, place workloads, sync members')
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .option('--apiserver-url <url>', "kcp apiserver's direct listener (default: what it has published in the host)")
    .option('--host-url <url>', "the host's API endpoint as tenants reach it, for status.url (default: as we reach it)")
    .option(
      '--metrics-port <port>',
      'serve /metrics over TLS on this port, to the client certificate of Secret kcp-metrics-client (default: not served)',
      parsePort,
    )
    .option(
      '--cluster-profiles',
      'show members as ClusterProfiles (multicluster.x-k8s.io) in namespace kcp-system, once the host has that kind',
    )
    .addOption(logLevelOption('info'))
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const signal = processSignal()
  await untilStopped(signal, () => operate(flags, signal))
}

async function operate(flags: Flags, signal: AbortSignal): Promise<void> {
  const { kubeconfig, apiserverUrl, hostUrl, metricsPort, clusterProfiles, logLevel } = flags
  const stopping = new AbortController()
  signal.addEventListener('abort', () => stopping.abort(signal.reason), { once: true })
  await using host = await openHost(kubeconfig)
  const log = createLogger({ level: logLevel })
  const metrics = createMetrics()
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
  }
  await using operator = await startOperatorRole(options)
  // Stopped while standing by: it has never led.
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

/** Standing by is no reason to be without metrics: this comes before the Lease. */
async function serveMetrics(port: number, { host, metrics, log, signal }: Serving): Promise<MetricsListener> {
  const { pki } = await installationKeys(host.client, signal, { keepsServing: false })
  const hosts = [`kcp-operator.${installationNamespace}.svc`]
  return listenForScrapes({ metrics, port, hosts, pki, log })
}
