// `kcp kubeconfig NAME`: prints a kubeconfig for one logical cluster, with admin rights inside it and none outside.
import { Command } from 'commander'
import { withInstallation } from './installation-flags.ts'
import { loadedLate } from './loaded-late.ts'

export function kubeconfigCommand(): Command {
  return withInstallation(new Command('kubeconfig'))
    .description('print a kubeconfig for a logical cluster, with admin rights inside it and none outside')
    .argument('<name>', 'name of the LogicalCluster')
    .option('--days <days>', 'validity of the client certificate', '365')
    .action(loadedLate(() => import('./run-kubeconfig.ts')))
}
