// `kcp drain MEMBER`: everything that runs in a member cluster moves to others, or what would move where.
import { Command } from 'commander'
import { withInstallation } from './installation-flags.ts'
import { loadedLate } from './loaded-late.ts'

/** The command `drain`. */
export function drainCommand(): Command {
  return withInstallation(new Command('drain'))
    .description('move everything that runs in a member cluster to others (spec.state: Draining)')
    .argument('<member>', 'name of the MemberCluster')
    .option('--dry-run', 'only tell what would go where, and what nothing can take')
    .option('--undo', 'take workloads there again (spec.state: Active); what has moved stays where it is')
    .action(loadedLate(() => import('./run-drain.ts')))
}
