// What `etcd` tells `kube-apiserver`, both of bin/envtest.
import { ExitError, messageOf } from '#cli/process/exit-error.ts'

export interface DataDirectory {
  /** The directory of the data, absolute. */
  readonly dir: string
  /** True if a write is acknowledged only after it is on the disk. */
  readonly isDurable: boolean
}

export const dataDirectoryPath = '/kcp.dev/data-directory'

/** Asks the etcd at this URL. Rejects with ExitError if it does not answer, or is not the etcd of bin/envtest. */
export async function readDataDirectory(etcd: string, signal: AbortSignal): Promise<DataDirectory> {
  const response = await fetch(new URL(dataDirectoryPath, etcd), { signal }).catch((error: unknown) => {
    throw new ExitError(`etcd at ${etcd} does not answer: ${messageOf(error)}`)
  })
  if (response.status !== 200)
    throw new ExitError(`${etcd} is not the etcd of this folder: set KUBEBUILDER_ASSETS, which finds both programs`)
  return (await response.json()) as DataDirectory
}
