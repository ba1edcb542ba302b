// `kcp member join NAME`: registers a physical cluster that we can reach.
import { Command, Option } from 'commander'
import { loadKubeconfig } from '../../client/index.ts'
import { joinMember } from '../../syncer/index.ts'
import { createLogger } from '../../telemetry/index.ts'
import { openInstallation, withInstallation, type InstallationFlags } from './installation.ts'
import { processSignal } from '../process/process-signal.ts'

interface Flags extends InstallationFlags {
  readonly kubeconfig: string
  readonly context?: string
  readonly serviceNetwork: 'None' | 'Flat'
}

/** The command; the caller adds it below `kcp member`. */
export function memberJoinCommand(): Command {
  const network = new Option(
    '--service-network <type>',
    'Flat: pods of members reach each other by address; None: they do not',
  )
  return withInstallation(new Command('join'))
    .description('register a cluster: an identity of kcp in it with the rights that syncing needs, and a MemberCluster')
    .argument('<name>', 'name of the MemberCluster')
    .requiredOption('--kubeconfig <file>', 'kubeconfig of an admin of that cluster; used once, not kept')
    .option('--context <name>', 'context in that file (default: its current one)')
    .addOption(network.choices(['None', 'Flat']).default('None'))
    .action(run)
}

async function run(name: string, flags: Flags): Promise<void> {
  const signal = processSignal()
  const options = { trusted: true, ...(flags.context === undefined ? {} : { context: flags.context }) }
  const memberKubeconfig = await loadKubeconfig({ file: flags.kubeconfig }, options)
  await using installation = await openInstallation(flags, signal)
  const log = createLogger({ level: 'warn' })
  const { clusters } = installation
  const { id } = await joinMember({
    name,
    memberKubeconfig,
    clusters,
    serviceNetwork: flags.serviceNetwork,
    log,
    signal,
  })
  console.log(`member cluster "${name}" is registered (id ${id}); watch it with: kubectl get memberclusters ${name}`)
}
