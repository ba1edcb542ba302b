// `kcp member join NAME`: registers a physical cluster that we can reach.
import { Command, Option } from 'commander'
import { serviceNetworks } from '#crds/index.ts'
import { withInstallation } from './installation-flags.ts'
import { loadedLate } from './loaded-late.ts'
import { withRequired } from './with-required.ts'

/** The command; the caller adds it below `kcp member`. */
export function memberJoinCommand(): Command {
  const network = new Option(
    '--service-network <type>',
    'Flat: pods of members reach each other by address; Gateway: they reach Services of each other through a gateway that kcp runs in each; None: they do not',
  )
  const join = withInstallation(new Command('join'))
    .description(
      "register a cluster: create kcp's identity in it, with the permissions that syncing needs, and a MemberCluster",
    )
    .argument('<name>', 'name of the MemberCluster')
  return withRequired(join, '--kubeconfig <file>', 'kubeconfig of an admin of that cluster; used once, not stored')
    .option('--context <name>', 'context in that file (default: its current one)')
    .addOption(network.choices(serviceNetworks).default('None'))
    .option(
      '--export <resource.group...>',
      'offer these custom resources of that cluster to logical clusters, in addition to those that it offers already',
      [],
    )
    .action(loadedLate(() => import('./run-member-join.ts')))
}
