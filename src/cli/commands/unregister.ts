// `kcp unregister`: takes our APIService out of a host, before the server behind it goes.
import { Command } from 'commander'
import { loadedLate } from './loaded-late.ts'

export function unregisterCommand(): Command {
  return new Command('unregister')
    .description('delete our APIService in the host; run it before the last kcp apiserver of the host is removed')
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .action(loadedLate(() => import('./run-unregister.ts')))
}
