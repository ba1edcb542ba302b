// `kcp operator`: the loops over our custom resources in a host.
import { Command } from 'commander'
import { createLogger, type LogLevel } from '../../telemetry/index.ts'
import { logLevelOption } from './log-level-option.ts'
import { aborted, processSignal, untilStopped } from '../process/process-signal.ts'
import { settleMemory } from '../process/settle-memory.ts'
import { openHost } from '../roles/host-installation.ts'
import { startOperatorRole } from '../roles/operator.ts'

interface Flags {
  readonly kubeconfig?: string
  readonly apiserverUrl?: string
  readonly hostUrl?: string
  readonly logLevel: LogLevel
}

export function operatorCommand(): Command {
  return new Command('operator')
    .description('reconcile LogicalClusters and MemberClusters of a host, place workloads, sync members')
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .option('--apiserver-url <url>', "kcp apiserver's direct listener (default: what it has published in the host)")
    .option('--host-url <url>', "the host's API endpoint as tenants reach it, for status.url (default: as we reach it)")
    .addOption(logLevelOption('info'))
    .action(run)
}

async function run(flags: Flags): Promise<void> {
  const signal = processSignal()
  await untilStopped(signal, () => operate(flags, signal))
}

async function operate({ kubeconfig, apiserverUrl, hostUrl, logLevel }: Flags, signal: AbortSignal): Promise<void> {
  const stopping = new AbortController()
  signal.addEventListener('abort', () => stopping.abort(signal.reason), { once: true })
  await using host = await openHost(kubeconfig)
  const log = createLogger({ level: logLevel })
  const options = {
    host,
    log,
    signal: stopping.signal,
    ...(apiserverUrl === undefined ? {} : { apiserverUrl }),
    ...(hostUrl === undefined ? {} : { hostUrl }),
  }
  await using operator = await startOperatorRole(options)
  // Stopped while standing by: it has never led.
  if (!signal.aborted) console.log('kcp operator is ready')
  settleMemory()
  await Promise.race([aborted(signal), operator.done])
}
