// `kcp drain MEMBER`: moves everything that runs in a member cluster to others, or shows what would move where.
import { Command } from 'commander'
import { withInstallation } from './installation-flags.ts'
import { loadedLate } from './loaded-late.ts'

/** The command `drain`. */
export function drainCommand(): Command {
  return withInstallation(new Command('drain'))
    .description('move everything that runs in a member cluster to others (spec.state: Draining)')
    .argument('<member>', 'name of the MemberCluster')
    .option('--dry-run', 'only show which workload would go where, and which have nowhere to go')
    .option(
      '--undo',
      'let the member take workloads again (spec.state: Active); workloads that have moved stay where they are',
    )
    .action(loadedLate(() => import('./run-drain.ts')))
}
