// `kcp unregister`: takes our APIService out of a host, before the server behind it goes.
import { Command } from 'commander'
import { processSignal } from '../process/process-signal.ts'
import { unregister } from '../roles/api-service.ts'
import { openHost } from '../roles/host-installation.ts'

export function unregisterCommand(): Command {
  return new Command('unregister')
    .description('delete our APIService in the host; run it before the last kcp apiserver of the host is removed')
    .option('--kubeconfig <file>', 'the host (default: KUBECONFIG, or the pod we run in)')
    .action(run)
}

async function run({ kubeconfig }: { readonly kubeconfig?: string }): Promise<void> {
  await using host = await openHost(kubeconfig)
  await unregister(host.client, processSignal())
  console.log('the APIService of kcp is not in the host any more')
}
