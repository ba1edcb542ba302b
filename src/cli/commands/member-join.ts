// `kcp member join NAME`: registers a physical cluster that we can reach.
import { isStatusError } from '#apimachinery/status/index.ts'
import { loadKubeconfig } from '#client/index.ts'
import { tryExportedApi, type ServiceNetwork } from '#crds/index.ts'
import { joinMember } from '#syncer/index.ts'
import { createLogger } from '#telemetry/index.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'

interface Flags extends InstallationFlags {
  readonly kubeconfig: string
  readonly context?: string
  readonly serviceNetwork: ServiceNetwork
  readonly export: readonly string[]
}

/** Runs the command. */
export async function run(name: string, flags: Flags): Promise<void> {
  const exported = flags.export.map((name) => {
    const api = tryExportedApi(name)
    if (api === undefined)
      throw new Error(
        `"${name}" is not the name of a CustomResourceDefinition, which is RESOURCE.GROUP, such as widgets.example.com`,
      )
    return api
  })
  const signal = processSignal()
  // kcp will connect to the member's server directly, so the kubeconfig may not name a proxy.
  const options = {
    trusted: true,
    mayUseProxy: false,
    ...(flags.context === undefined ? {} : { context: flags.context }),
  }
  const memberKubeconfig = await loadKubeconfig({ file: flags.kubeconfig }, options)
  await using installation = await openInstallation(flags, signal)
  const log = createLogger({ level: 'warn' })
  const { clusters } = installation
  const joined = joinMember({
    name,
    memberKubeconfig,
    clusters,
    serviceNetwork: flags.serviceNetwork,
    exported,
    log,
    signal,
  })
  const { id, takenFrom } = await joined.catch((error: unknown) => {
    throw withAdvice(error, flags.kubeconfig)
  })
  if (takenFrom !== undefined)
    console.error(
      `warning: this cluster belonged to another installation of kcp, whose kube-system has uid "${takenFrom}". It belongs to this one now. ` +
        'If the other one still exists, delete its MemberCluster: what it runs there stays in separate namespaces until then',
    )
  console.log(`member cluster "${name}" is registered (id ${id}); watch it with: kubectl get memberclusters ${name}`)
}

/** An error with a remedy if the cluster refuses the credentials or a request; otherwise the error itself. */
function withAdvice(error: unknown, file: string): unknown {
  if (isStatusError(error, 'Unauthorized'))
    return new ExitError(`the cluster refuses the credentials in "${file}" (401): they may have expired`, {
      cause: error,
    })
  if (isStatusError(error, 'Forbidden'))
    return new ExitError(`${error.message}: joining needs the rights of an admin in both clusters`, { cause: error })
  return error
}
