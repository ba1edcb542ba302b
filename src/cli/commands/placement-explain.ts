// `kcp placement explain KIND/NAME`: why a workload runs where it does, filter by filter and score by score.
import { Command } from 'commander'
import { withInstallation } from './installation-flags.ts'
import { loadedLate } from './loaded-late.ts'
import { withRequired } from './with-required.ts'

/** The command `placement`, with `explain` below it. */
export function placementCommand(): Command {
  const explain = withInstallation(new Command('explain'))
    .description('show why a workload runs where it does: what each filter and score says about each member cluster')
    .argument('<workload>', 'KIND/NAME, such as deployment/web')
  withRequired(explain, '--cluster <name>', 'the LogicalCluster that it is in')
    .option('-n, --namespace <name>', 'its namespace', 'default')
    .action(loadedLate(() => import('./run-placement-explain.ts')))
  return new Command('placement').description('where workloads run').addCommand(explain)
}
