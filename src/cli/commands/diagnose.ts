// `kcp diagnose`: says in words what is wrong with an installation and what to do.
import { Command, Option } from 'commander'
import { loadedLate } from './loaded-late.ts'

export function diagnoseCommand(): Command {
  return new Command('diagnose')
    .description('say what is wrong with an installation and what to do; exit code 1 if anything is')
    .addOption(new Option('--root-dir <dir>', 'directory of a running `kcp start`').conflicts('kubeconfig'))
    .addOption(new Option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)'))
    .action(loadedLate(() => import('./run-diagnose.ts')))
}
