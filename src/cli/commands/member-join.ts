// `kcp member join NAME`: registers a physical cluster that we can reach, or, with --pull, one whose agent reaches us.
import { isStatusError } from '#apimachinery/status/index.ts'
import { loadKubeconfig, type Kubeconfig } from '#client/index.ts'
import { tryExportedApi, type ExportedApi, type ServiceNetwork } from '#crds/index.ts'
import { joinMember } from '#syncer/index.ts'
import { createLogger } from '#telemetry/index.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { pull, type PullFlags } from './member-pull.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'

interface Flags extends InstallationFlags, PullFlags {
  readonly kubeconfig?: string
  readonly context?: string
  readonly serviceNetwork?: ServiceNetwork
  readonly export: readonly string[]
  readonly pull?: boolean
  readonly apply?: boolean
}

/** Runs the command. */
export async function run(name: string, flags: Flags): Promise<void> {
  requireMatching(flags)
  const exported = flags.export.map(exportedApi)
  const signal = processSignal()
  const memberKubeconfig = await kubeconfigOf(flags)
  await using installation = await openInstallation(flags, signal)
  const network = flags.serviceNetwork === undefined ? {} : { serviceNetwork: flags.serviceNetwork }
  const options = {
    name,
    clusters: installation.clusters,
    ...network,
    exported,
    log: createLogger({ level: 'warn' }),
    signal,
  }
  const joining =
    flags.pull === true
      ? pull({ ...options, ...(memberKubeconfig && { memberKubeconfig }) }, flags, installation)
      : push({ ...options, memberKubeconfig: required(memberKubeconfig) })
  await joining.catch((error: unknown) => {
    throw withAdvice(error, flags.kubeconfig ?? '')
  })
}

async function push(options: Parameters<typeof joinMember>[0]): Promise<void> {
  const { name } = options
  const { id, takenFrom } = await joinMember(options)
  if (takenFrom !== undefined)
    console.error(
      `warning: this cluster belonged to another installation of kcp, whose kube-system has uid "${takenFrom}". It belongs to this one now. ` +
        'If the other one still exists, delete its MemberCluster: what it runs there stays in separate namespaces until then',
    )
  console.log(`member cluster "${name}" is registered (id ${id}); watch it with: kubectl get memberclusters ${name}`)
}

function requireMatching({ pull: isPull = false, kubeconfig, apply = false, ...flags }: Flags): void {
  if (!isPull) {
    const { approve, server, httpProxy, image } = flags
    const given = Object.entries({ approve, server, 'http-proxy': httpProxy, image, apply: apply || undefined })
    const [first] = given.find(([, value]) => value !== undefined) ?? []
    if (first !== undefined) throw new UsageError(`--${first} is for --pull`)
    if (kubeconfig === undefined)
      throw new UsageError(
        "required option '--kubeconfig <file>' not specified; a cluster that kcp cannot reach needs --pull",
      )
    return
  }
  if (apply && kubeconfig === undefined) throw new UsageError('--apply needs --kubeconfig')
  if (!apply && kubeconfig !== undefined)
    throw new UsageError('with --pull, --kubeconfig is for --apply: without it, nothing is applied in that cluster')
}

function exportedApi(name: string): ExportedApi {
  const api = tryExportedApi(name)
  if (api === undefined)
    throw new Error(
      `"${name}" is not the name of a CustomResourceDefinition, which is RESOURCE.GROUP, such as widgets.example.com`,
    )
  return api
}

async function kubeconfigOf({
  kubeconfig: file,
  context,
  pull: isPull = false,
}: Flags): Promise<Kubeconfig | undefined> {
  if (file === undefined) return undefined
  // With push, kcp will connect to the member's server directly, so the kubeconfig may not name a proxy.
  return await loadKubeconfig(
    { file },
    { trusted: true, mayUseProxy: isPull, ...(context !== undefined && { context }) },
  )
}

function required(kubeconfig: Kubeconfig | undefined): Kubeconfig {
  if (kubeconfig === undefined) throw new UsageError('--kubeconfig is missing')
  return kubeconfig
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
