// `kcp drain MEMBER`: moves everything that runs in a member cluster to others, or shows what would move where.
import { isStatusError } from '#apimachinery/status/index.ts'
import { memberClusters, type MemberCluster } from '#crds/index.ts'
import { previewDrain, type DrainPreview } from '#operator/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { ExitError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, openPlacement } from './installation.ts'

interface Flags extends InstallationFlags {
  readonly dryRun?: boolean
  readonly undo?: boolean
}

/** Runs the command. */
export async function run(name: string, { dryRun = false, undo = false, ...flags }: Flags): Promise<void> {
  if (dryRun && undo) throw new ExitError('--dry-run and --undo exclude each other')
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const { clusters } = installation
  await clusters.get<MemberCluster>(memberClusters, { name }, { signal }).catch((error: unknown) => {
    if (isStatusError(error, 'NotFound'))
      throw new ExitError(`there is no MemberCluster "${name}"; kubectl get mc lists them`)
    throw error
  })
  if (dryRun) {
    const log = createLogger({ level: 'warn' })
    await using placement = await openPlacement(installation, { log, signal })
    console.log(previewText(name, previewDrain(placement.inputs, name)))
    return
  }
  const state = undo ? 'Active' : 'Draining'
  await clusters.patch(memberClusters, { name }, 'merge', { spec: { state } }, { signal })
  const next = undo ? 'takes workloads again' : 'drains; watch it with: kubectl get memberclusters -o wide'
  console.log(`member cluster "${name}" ${next}`)
}

/** One line for each workload, and how many can go nowhere. */
function previewText(member: string, previews: readonly DrainPreview[]): string {
  const lines = previews.map(({ logicalCluster, kind, namespace, name, to, blockedBy }) => {
    const where = to.length === 0 ? 'stays' : `-> ${to.join(', ')}`
    return `${logicalCluster}  ${namespace}/${name} (${kind})  ${where}${blockedBy === undefined ? '' : `: ${blockedBy}`}`
  })
  const blocked = previews.filter(({ to }) => to.length === 0).length
  return [...lines, `${previews.length} workloads in "${member}": ${blocked} would stay`].join('\n')
}
