// `kcp member join NAME`: registers a physical cluster that we can reach.
import { Command, Option } from 'commander'
import { loadKubeconfig } from '../../client/index.ts'
import { tryExportedApi } from '../../crds/index.ts'
import { joinMember } from '../../syncer/index.ts'
import { createLogger } from '../../telemetry/index.ts'
import { openInstallation, withInstallation, type InstallationFlags } from './installation.ts'
import { withRequired } from './with-required.ts'
import { processSignal } from '../process/process-signal.ts'

interface Flags extends InstallationFlags {
  readonly kubeconfig: string
  readonly context?: string
  readonly serviceNetwork: 'None' | 'Flat'
  readonly export: readonly string[]
}

/** The command; the caller adds it below `kcp member`. */
export function memberJoinCommand(): Command {
  const network = new Option(
    '--service-network <type>',
    'Flat: pods of members reach each other by address; None: they do not',
  )
  const join = withInstallation(new Command('join'))
    .description('register a cluster: an identity of kcp in it with the rights that syncing needs, and a MemberCluster')
    .argument('<name>', 'name of the MemberCluster')
  return withRequired(join, '--kubeconfig <file>', 'kubeconfig of an admin of that cluster; used once, not kept')
    .option('--context <name>', 'context in that file (default: its current one)')
    .addOption(network.choices(['None', 'Flat']).default('None'))
    .option(
      '--export <resource.group...>',
      'custom resources of that cluster that logical clusters get, besides those they get already',
      [],
    )
    .action(run)
}

async function run(name: string, flags: Flags): Promise<void> {
  const exported = flags.export.map((name) => {
    const api = tryExportedApi(name)
    if (api === undefined)
      throw new Error(`"${name}" is no name of a CustomResourceDefinition: RESOURCE.GROUP, such as widgets.example.com`)
    return api
  })
  const signal = processSignal()
  // The kubeconfig that kcp will have of the member leads to the server itself.
  const options = {
    trusted: true,
    mayUseProxy: false,
    ...(flags.context === undefined ? {} : { context: flags.context }),
  }
  const memberKubeconfig = await loadKubeconfig({ file: flags.kubeconfig }, options)
  await using installation = await openInstallation(flags, signal)
  const log = createLogger({ level: 'warn' })
  const { clusters } = installation
  const { id } = await joinMember({
    name,
    memberKubeconfig,
    clusters,
    serviceNetwork: flags.serviceNetwork,
    exported,
    log,
    signal,
  })
  console.log(`member cluster "${name}" is registered (id ${id}); watch it with: kubectl get memberclusters ${name}`)
}
