// `kcp create NAME`: creates a LogicalCluster and waits until it is Ready.
import { sleep } from '#async/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { logicalClusters, logicalClusterSnapshots, type LogicalCluster, type Subject } from '#crds/index.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { ageText } from '#explain/index.ts'
import { logicalClusterOf, nameOfLogicalCluster } from './credentials.ts'
import { rootDirFlag, type InstallationFlags } from './flags.ts'
import { openInstallation } from './installation.ts'
import { listText } from './list.ts'
import { documentText, type OutputFormat } from './output.ts'
import { snapshotForCopy } from './snapshot-create.ts'

interface Flags extends InstallationFlags {
  /** `User:NAME` or `Group:NAME`. */
  readonly owner: readonly string[]
  readonly parent?: string
  /** The logical cluster that it becomes a copy of. */
  readonly from?: string
  /** The LogicalClusterSnapshot whose objects it gets. */
  readonly snapshot?: string
  /** Whether the copy gets the volumes of claims, by a LogicalClusterSnapshot in `store`. */
  readonly volumes?: boolean
  readonly store?: string
  readonly wait: boolean
  /** Seconds. */
  readonly timeout: number
  readonly output: OutputFormat | 'text'
}

const apiGroup = 'rbac.authorization.k8s.io'
/** Milliseconds before and between the lines about the wait. */
const tellMs = 2000

/** Runs the command. */
export async function run(
  text: string,
  { owner, parent, from, snapshot: named, volumes = false, store, wait, timeout, output, ...flags }: Flags,
): Promise<void> {
  const name = nameOfLogicalCluster(text)
  const owners = owner.map(subjectOf)
  if ((volumes || store !== undefined) && (!volumes || store === undefined || from === undefined))
    throw new UsageError('a copy with volumes needs --from NAME --volumes --store NAME: it is made from a snapshot')
  const signal = processSignal()
  await using installation = await openInstallation(flags, signal)
  const { clusters } = installation
  if (from !== undefined) await logicalClusterOf(installation, from, signal)
  if (named !== undefined) await requireSnapshot(clusters, named, signal)
  const isThere = (await clusters.tryGet(logicalClusters, { name }, { signal })) !== undefined
  if (volumes && isThere) throw new ExitError(`LogicalCluster "${name}" exists already`)
  const snapshot =
    volumes && store !== undefined && from !== undefined
      ? await snapshotForCopy(clusters, { from, copy: name, store, timeout }, signal)
      : named
  const spec = {
    ...(owners.length > 0 && { owners }),
    ...(parent !== undefined && { parentRef: { name: parent } }),
    ...(from !== undefined && snapshot === undefined && { source: { logicalClusterRef: { name: from } } }),
    ...(snapshot !== undefined && { source: { snapshot: { name: snapshot } } }),
  }
  const object: LogicalCluster = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'LogicalCluster',
    metadata: { name },
    ...(Object.keys(spec).length > 0 && { spec }),
  }
  await clusters.create(logicalClusters, object, { signal }).catch((error: unknown) => {
    if (isStatusError(error, 'AlreadyExists')) throw new ExitError(`LogicalCluster "${name}" exists already`)
    throw error
  })
  if (output === 'text') console.log(`logicalcluster.kcp.dev/${name} created`)
  const created = wait
    ? await untilReady(clusters, name, { signal, timeoutMs: timeout * 1000 })
    : await logicalClusterOf(installation, name, signal)
  if (output !== 'text') {
    process.stdout.write(
      output === 'json' || output === 'yaml' ? documentText(created, output) : listText([created], output, Date.now()),
    )
    return
  }
  if (!wait) return
  const url = created.status?.directURL ?? created.status?.url ?? ''
  console.log(`it is ready at ${url}; try:  kcp connect ${name}${rootDirFlag(flags)} -- kubectl get namespaces`)
}

async function requireSnapshot(clusters: KubeClient, name: string, signal: AbortSignal): Promise<void> {
  if ((await clusters.tryGet(logicalClusterSnapshots, { name }, { signal })) === undefined)
    throw new ExitError(`there is no LogicalClusterSnapshot "${name}"; kcp snapshot list lists them`)
}

/** The subject of a flag `--owner`. Throws UsageError. */
export function subjectOf(text: string): Subject {
  const [, kind, name] = /^(User|Group):(.+)$/.exec(text) ?? []
  if (kind === undefined || name === undefined)
    throw new UsageError(`--owner must be User:NAME or Group:NAME, not "${text}"`)
  return { kind: kind as 'User' | 'Group', name, apiGroup }
}

interface ReadyWait {
  readonly signal: AbortSignal
  readonly timeoutMs: number
  /** Milliseconds between two checks. Default 100. */
  readonly everyMs?: number
}

/** The LogicalCluster once it is Ready; says why it is not, from time to time. Rejects with ExitError after the time. */
export async function untilReady(
  clusters: KubeClient,
  name: string,
  { signal, timeoutMs, everyMs = 100 }: ReadyWait,
): Promise<LogicalCluster> {
  const began = Date.now()
  let toldAt = began
  for (;;) {
    const found = await clusters.get<LogicalCluster>(logicalClusters, { name }, { signal })
    const ready = found.status?.conditions?.find(({ type }) => type === 'Ready')
    if (ready?.status === 'True') return found
    const why = ready === undefined ? 'no operator has looked at it yet' : `${ready.reason}: ${ready.message}`
    const waited = Date.now() - began
    if (waited > timeoutMs)
      throw new ExitError(`LogicalCluster "${name}" is not Ready after ${ageText(waited)}: ${why}; try kcp diagnose`)
    if (Date.now() - toldAt >= tellMs) {
      console.error(`waiting for LogicalCluster "${name}" for ${ageText(waited)}: ${why}`)
      toldAt = Date.now()
    }
    await sleep(everyMs, signal)
  }
}
