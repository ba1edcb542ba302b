// `kcp drain MEMBER`: moves everything that runs in a member cluster to others, or shows what would move where.
import { sleep } from '#async/index.ts'
import { findCondition, memberClusters, type MemberCluster } from '#crds/index.ts'
import { ageText, explainMember, findingsText } from '#explain/index.ts'
import { previewDrain, type DrainPreview } from '#operator/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress } from '#cli/process/progress.ts'
import { memberOf } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, openPlacement, type Installation } from './installation.ts'
import { columns, documentText, type OutputFormat } from './output.ts'

interface Flags extends InstallationFlags {
  readonly dryRun?: boolean
  readonly undo?: boolean
  readonly wait?: boolean
  /** Seconds. */
  readonly timeout: number
  readonly output: OutputFormat
}

const lookMs = 500

/** Runs the command. */
export async function run(name: string, flags: Flags): Promise<void> {
  const { dryRun = false, undo = false, wait = false, timeout, output } = flags
  if (dryRun && (undo || wait)) throw new UsageError(`--dry-run and ${undo ? '--undo' : '--wait'} exclude each other`)
  if (undo && wait) throw new UsageError('--undo and --wait exclude each other')
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  await memberOf(installation, name, signal)
  if (dryRun) {
    const previews = await preview(installation, name, signal)
    process.stdout.write(previewText(name, previews, output))
    return
  }
  const state = undo ? 'Active' : 'Draining'
  await installation.clusters.patch(memberClusters, { name }, 'merge', { spec: { state } }, { signal })
  const next = undo ? 'takes workloads again' : `drains${wait ? '' : `; watch it with:  kcp explain member/${name}`}`
  console.log(`member cluster "${name}" ${next}`)
  if (wait) await untilDrained(installation, name, { signal, timeoutMs: timeout * 1000 })
}

async function preview(
  installation: Installation,
  name: string,
  signal: AbortSignal,
): Promise<readonly DrainPreview[]> {
  using progress = startProgress()
  progress.tell('reading the workloads of all logical clusters')
  await using placement = await openPlacement(installation, { log: createLogger({ level: 'warn' }), signal })
  return previewDrain(placement.inputs, name)
}

async function untilDrained(
  installation: Installation,
  name: string,
  { signal, timeoutMs }: { readonly signal: AbortSignal; readonly timeoutMs: number },
): Promise<void> {
  const began = Date.now()
  using progress = startProgress()
  for (;;) {
    const member = await memberOf(installation, name, signal)
    const age = ageText(Date.now() - began)
    if (isDrained(member)) {
      console.log(`drained in ${age}: nothing is left in "${name}", and it may be switched off`)
      return
    }
    const { placed = 0, moving = 0, held = 0 } = member.status ?? {}
    if (Date.now() - began > timeoutMs) {
      console.error(findingsText(explainMember(member), Date.now()))
      throw new ExitError(`${placed} workloads are left in "${name}" after ${age}; the drain goes on`)
    }
    progress.tell(`${placed} workloads left in "${name}": ${moving} moving, ${held} with nowhere to go, ${age}`)
    await sleep(lookMs, signal)
  }
}

/** Whether the operator has seen the drain, and nothing is left. */
function isDrained(member: MemberCluster): boolean {
  const { generation = 0 } = member.metadata
  return findCondition(member, 'Drained')?.status === 'True' && (member.status?.observedGeneration ?? 0) >= generation
}

/** One line for each workload, and how many can go nowhere. */
function previewText(member: string, previews: readonly DrainPreview[], output: OutputFormat): string {
  if (output === 'json' || output === 'yaml') return documentText({ member, workloads: previews }, output)
  const path = ({ logicalCluster, kind, namespace, name }: DrainPreview): string =>
    `${logicalCluster}/${namespace}/${kind.toLowerCase()}/${name}`
  if (output === 'name') return previews.map((one) => `${path(one)}\n`).join('')
  const rows = previews.map(({ logicalCluster, kind, namespace, name, to, blockedBy = '' }) => [
    ...[logicalCluster, `${namespace}/${name}`, kind, to.length === 0 ? 'stays' : to.join(', '), blockedBy],
  ])
  const blocked = previews.filter(({ to }) => to.length === 0).length
  const table = rows.length === 0 ? '' : columns([['CLUSTER', 'WORKLOAD', 'KIND', 'TO', 'WHY'], ...rows])
  return `${table}${previews.length} workloads in "${member}": ${blocked} would stay\n`
}
