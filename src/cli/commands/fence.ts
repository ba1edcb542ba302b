// `kcp fence MEMBER`: tells kcp that nothing runs any more in a member cluster that does not answer.
import { Command } from 'commander'
import { withInstallation } from './installation-flags.ts'
import { loadedLate } from './loaded-late.ts'

/** The command `fence`. */
export function fenceCommand(): Command {
  return withInstallation(new Command('fence'))
    .description(
      'declare that a member cluster that does not answer is switched off, so that all its workloads start elsewhere',
    )
    .argument('<member>', 'name of the MemberCluster')
    .option('--undo', 'let the member take workloads again as soon as it answers')
    .action(loadedLate(() => import('./run-fence.ts')))
}
