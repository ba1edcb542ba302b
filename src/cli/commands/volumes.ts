// `kcp volumes`: volumes that move between members, how far they are, and what they wait for. With --agree, a tenant's
// consent to the time without the application, or to the loss of later writes.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import {
  emptyVolumeConsent,
  findCondition,
  isLostMember,
  memberClusters,
  volumeConsentAnnotation,
  volumeMoves,
  type MemberCluster,
  type VolumeMove,
} from '#crds/index.ts'
import { ageText } from '#explain/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { directOf } from '#cli/across/direct.ts'
import { openInside } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, type Installation } from './installation.ts'
import { objectsText, type OutputFormat } from './output.ts'

interface Flags extends InstallationFlags {
  readonly cluster?: string
  readonly namespace?: string
  readonly agree?: string
  readonly yes?: boolean
  readonly output: OutputFormat
}

const claims = { group: '', version: 'v1', resource: 'persistentvolumeclaims' } as const

/** Runs the command. */
export async function run(flags: Flags): Promise<void> {
  const { cluster, namespace, agree, yes = false, output } = flags
  if (agree !== undefined && (cluster === undefined || namespace === undefined))
    throw new UsageError('--agree needs the claim of one namespace: give --cluster and --namespace')
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const { items } = await installation.clusters.list<VolumeMove>(volumeMoves, { signal })
  const found = items.filter(
    ({ spec }) =>
      (cluster === undefined || spec.logicalCluster === cluster) &&
      (namespace === undefined || spec.namespace === namespace),
  )
  if (agree !== undefined) {
    await agreeTo(agree, { found, yes, installation, signal })
    return
  }
  process.stdout.write(volumesText(found, output, Date.now()))
  if (found.length === 0) console.error('no volume moves, and no old volume is kept')
}

/** The moves in a format, with a line feed at its end. Empty for a table without rows. */
export function volumesText(items: readonly VolumeMove[], format: OutputFormat, nowMs: number): string {
  return objectsText(items, format, { headings, narrow: 8, cells: (item) => cellsOf(item, nowMs) })
}

const headings = ['CLUSTER', 'NAMESPACE', 'CLAIM', 'FROM', 'TO', 'PHASE', 'AGE', 'TELLS', 'WAY', 'CONNECTION', 'NAME']

function cellsOf({ metadata, spec, status = {} }: VolumeMove, nowMs: number): string[] {
  const progressing = findCondition({ status: { conditions: status.conditions ?? [] } }, 'Progressing')
  const waits = progressing?.status === 'False' ? `${progressing.reason}: ${progressing.message}` : undefined
  return [
    ...[spec.logicalCluster, spec.namespace, spec.claim, spec.from, spec.to, status.phase ?? 'Preparing'],
    ...[ageText(nowMs - Date.parse(metadata.creationTimestamp ?? '')), waits ?? status.summary ?? ''],
    ...[spec.way, status.connection?.way ?? '', metadata.name],
  ]
}

interface Agreement {
  readonly found: readonly VolumeMove[]
  readonly yes: boolean
  readonly installation: Installation
  readonly signal: AbortSignal
}

async function agreeTo(claim: string, { found, yes, installation, signal }: Agreement): Promise<void> {
  const move = found.find(({ spec, status }) => spec.claim === claim && status?.phase !== 'Moved')
  if (move === undefined)
    throw new ExitError(`no volume of a claim "${claim}" moves there; kcp volumes lists those that do`)
  const { from, to, way, logicalCluster, namespace } = move.spec
  if (way === 'Restore')
    throw new ExitError(
      `the volume of "${claim}" is made from a snapshot, which needs no consent; to begin with an empty one instead, its tenant runs:  kubectl annotate persistentvolumeclaim ${claim} --namespace ${namespace} ${volumeConsentAnnotation}=${emptyVolumeConsent}`,
    )
  const { expectedDowntimeSeconds, lastRound } = move.status ?? {}
  const member = await installation.clusters.tryGet<MemberCluster>(memberClusters, { name: from }, { signal })
  const isLost = member !== undefined && isLostMember(member)
  if (isLost && (way !== 'Replicate' || lastRound === undefined))
    throw new ExitError(`member cluster "${from}" does not answer, and "${to}" has no complete copy of the volume`)
  const what = isLost
    ? `the application goes on in "${to}" with the data of ${lastRound?.completionTime ?? ''}; what was written later is lost`
    : `the application is stopped for about ${expectedDowntimeSeconds ?? 'an unknown number of'} s, and goes on in "${to}"`
  if (!yes)
    throw new ExitError(
      `${what}. To agree, say so:  kcp volumes --agree ${claim} -c ${logicalCluster} -n ${namespace} --yes`,
    )
  await using transport = await openInside(installation, logicalCluster as Parameters<typeof openInside>[1], signal)
  const value = isLost ? `${to}@${lastRound?.completionTime ?? ''}` : to
  const patch = { metadata: { annotations: { [volumeConsentAnnotation]: value } } }
  const client = directOf(transport, signal).client(logicalCluster)
  await client.patch<KubeObject>(claims, { namespace, name: claim }, 'merge', patch, { signal })
  console.log(`agreed: ${what}`)
}
