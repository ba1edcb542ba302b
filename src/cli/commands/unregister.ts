// `kcp unregister`: deletes our APIService in a host, before the server behind it is removed.
import { processSignal } from '#cli/process/process-signal.ts'
import { unregister } from '#cli/roles/api-service.ts'
import { openHost } from '#cli/roles/host-installation.ts'

/** Runs the command. */
export async function run({ kubeconfig }: { readonly kubeconfig?: string }): Promise<void> {
  await using host = await openHost(kubeconfig)
  await unregister(host.client, processSignal())
  console.log('the APIService of kcp was removed from the host')
}
