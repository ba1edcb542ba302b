// `kcp member join NAME`: registers a physical cluster that we can reach.
import { Command, Option } from 'commander'
import { serviceNetworks } from '../../crds/index.ts'
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
    .description('register a cluster: an identity of kcp in it with the rights that syncing needs, and a MemberCluster')
    .argument('<name>', 'name of the MemberCluster')
  return withRequired(join, '--kubeconfig <file>', 'kubeconfig of an admin of that cluster; used once, not kept')
    .option('--context <name>', 'context in that file (default: its current one)')
    .addOption(network.choices(serviceNetworks).default('None'))
    .option(
      '--export <resource.group...>',
      'custom resources of that cluster that logical clusters get, besides those they get already',
      [],
    )
    .action(loadedLate(() => import('./run-member-join.ts')))
}
