// `kcp agent`: runs in a member in pull mode, and dials out to the installation.
import { inClusterConfig, loadKubeconfig } from '#client/index.ts'
import { startAgent } from '#agent/index.ts'
import { createLogger, type LogLevel } from '#telemetry/index.ts'
import { aborted, processSignal, untilStopped } from '#cli/process/process-signal.ts'
import { settleMemory } from '#cli/process/settle-memory.ts'

interface Flags {
  readonly kubeconfig?: string
  readonly namespace: string
  readonly healthPort: number
  readonly apiPort: number
  readonly logLevel: LogLevel
}

/** Runs the command. */
export async function run({ kubeconfig: file, logLevel, ...ports }: Flags): Promise<void> {
  const signal = processSignal()
  await untilStopped(signal, async () => {
    const kubeconfig = file === undefined ? await inClusterConfig() : await loadKubeconfig({ file }, { trusted: true })
    const log = createLogger({ level: logLevel })
    await using agent = await startAgent({ kubeconfig, ...ports, log, signal })
    console.log('kcp agent is running')
    settleMemory()
    await Promise.race([aborted(signal), agent.failed])
  })
}
