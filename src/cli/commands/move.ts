// `kcp move KIND/NAME --to MEMBER`: sets the annotation by which a workload, or a whole namespace, changes its members,
// and with --wait follows each copy from state to state.
import { sleep } from '#async/index.ts'
import { resourcePath, type ClusterName, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { clustersAnnotation, isPlaceable, memberClusters } from '#crds/index.ts'
import { ageText, copiesOf, explainObject, findingsText, gateText, type SeenCopy } from '#explain/index.ts'
import { basePath, directOf, patchWithWarnings, type Direct } from '#cli/across/direct.ts'
import { parseWorkload, workloadsIn } from '#cli/across/workloads.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress } from '#cli/process/progress.ts'
import { clusterOf, openInside } from './credentials.ts'
import type { InstallationFlags } from './flags.ts'
import { openInstallation, type Installation } from './installation.ts'
import { currentKcpContext } from './kubeconfig-file.ts'

interface Flags extends InstallationFlags {
  readonly to: string
  readonly cluster?: string
  readonly namespace?: string
  readonly dryRun?: boolean
  readonly wait?: boolean
  /** Seconds. */
  readonly timeout: number
}

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const lookMs = 300

/** What moves: a workload, or all workloads of a namespace. */
interface Moved {
  readonly cluster: ClusterName
  readonly namespace: string
  readonly gvr: GroupVersionResource
  readonly kind: string
  readonly name: string
}

/** Runs the command. */
export async function run(text: string, flags: Flags): Promise<void> {
  const { dryRun = false, wait = false, timeout } = flags
  if (dryRun && wait) throw new UsageError('--dry-run and --wait exclude each other')
  const signal = processSignal()
  const moved = await movedOf(text, flags)
  await using installation = await openInstallation(flags, signal)
  await using transport = await openInside(installation, moved.cluster, signal)
  const direct = directOf(transport, signal)
  const targets = await targetsOf(flags.to, installation, signal)
  const value = flags.to === 'any' ? null : flags.to
  const { warnings } = await annotate(direct, moved, { value, dryRun })
  for (const warning of warnings) console.error(`warning: ${warning}`)
  const what = `${moved.kind.toLowerCase()}/${moved.name}`
  if (dryRun) {
    console.log(`${what} would go to ${flags.to} (dry run)`)
    return
  }
  console.log(`${what} goes to ${flags.to}`)
  if (wait) await untilMoved(direct, moved, { targets, timeoutMs: timeout * 1000 })
  else console.log(`watch it with:  kcp explain ${what} -c ${moved.cluster}${inNamespace(moved)}`)
}

function inNamespace({ gvr, namespace }: Moved): string {
  return gvr.resource === 'namespaces' ? '' : ` -n ${namespace}`
}

async function movedOf(text: string, flags: Flags): Promise<Moved> {
  const cluster = await clusterOf(flags)
  const [kindText = '', name = ''] = text.split('/')
  if (['namespace', 'namespaces', 'ns'].includes(kindText.toLowerCase()) && name !== '')
    return { cluster, namespace: name, gvr: namespaces, kind: 'Namespace', name }
  const workload = parseWorkload(text)
  const namespace = flags.namespace ?? (await currentKcpContext())?.namespace ?? 'default'
  return { cluster, namespace, gvr: workload.kind.gvr, kind: workload.kind.kind, name: workload.name }
}

/** The members that are named; undefined if kcp chooses. Rejects with ExitError if one does not exist. */
async function targetsOf(
  to: string,
  { clusters }: Installation,
  signal: AbortSignal,
): Promise<readonly string[] | undefined> {
  if (to === 'any') return undefined
  if (to === 'none') return []
  const names = to.split(',')
  for (const name of names) {
    if ((await clusters.tryGet(memberClusters, { name }, { signal })) === undefined)
      throw new ExitError(`there is no MemberCluster "${name}"; kcp get members lists them`)
  }
  return names
}

async function annotate(
  direct: Direct,
  { cluster, namespace, gvr, kind, name }: Moved,
  { value, dryRun }: { readonly value: string | null; readonly dryRun: boolean },
): Promise<{ readonly warnings: readonly string[] }> {
  const isNamespace = gvr.resource === 'namespaces'
  const path = resourcePath(gvr, isNamespace ? { name } : { namespace, name })
  const query = `?fieldManager=kcp-move${dryRun ? '&dryRun=All' : ''}`
  const patch = { metadata: { annotations: { [clustersAnnotation]: value } } }
  return await patchWithWarnings(direct, `${basePath(cluster)}${path}${query}`, patch).catch((error: unknown) => {
    if (!isStatusError(error, 'NotFound')) throw error
    const where = isNamespace ? `"${name}"` : `"${namespace}/${name}"`
    throw new ExitError(`there is no ${kind} ${where} in logical cluster "${cluster}"`)
  })
}

async function untilMoved(
  direct: Direct,
  moved: Moved,
  { targets, timeoutMs }: { readonly targets: readonly string[] | undefined; readonly timeoutMs: number },
): Promise<void> {
  const began = Date.now()
  const told = new Map<string, string>()
  using progress = startProgress()
  for (;;) {
    const workloads = await read(direct, moved)
    const open = workloads.filter((workload) => !hasArrived(workload, targets))
    for (const workload of workloads) tell(workload, told)
    const age = ageText(Date.now() - began)
    if (open.length === 0) {
      console.log(`moved ${counted(workloads.length)} in ${age}`)
      return
    }
    if (Date.now() - began > timeoutMs) {
      console.error(stuckText(open, moved))
      throw new ExitError(
        `${open.length} of ${workloads.length} workloads have not moved after ${age}; the move goes on when this is over`,
      )
    }
    progress.tell(`${open.length} of ${workloads.length} workloads are moving, ${age}`)
    await sleep(lookMs, direct.signal)
  }
}

async function read(direct: Direct, { cluster, namespace, gvr, kind, name }: Moved): Promise<readonly KubeObject[]> {
  if (gvr.resource === 'namespaces') return (await workloadsIn(direct, cluster, namespace)).filter(isPlaceable)
  const found = await direct.client(cluster).tryGet(gvr, { namespace, name }, { signal: direct.signal })
  if (found === undefined) throw new ExitError(`${kind} "${namespace}/${name}" was deleted while it moved`)
  return [found]
}

/** Whether the copies are where they should be, and serve. */
function hasArrived(workload: KubeObject, targets: readonly string[] | undefined): boolean {
  const copies = copiesOf(workload)
  const serving = copies.filter(({ state }) => state === 'Serving').map(({ member }) => member)
  if (copies.length !== serving.length) return false
  if (targets === undefined) return serving.length > 0
  return serving.length === targets.length && targets.every((target) => serving.includes(target))
}

function counted(count: number): string {
  return count === 1 ? '1 workload' : `${count} workloads`
}

/** Prints the states of the copies where they have changed. */
function tell(workload: KubeObject, told: Map<string, string>): void {
  const { name = '', namespace = '' } = workload.metadata
  const key = `${workload.kind.toLowerCase()}/${name}`
  const text = copiesOf(workload).map(copyText).join('; ')
  if (told.get(key) === text) return
  told.set(key, text)
  console.error(`${new Date().toISOString().slice(11, 19)} ${namespace} ${key}: ${text === '' ? 'no copy' : text}`)
}

function copyText({ member, state, wait }: SeenCopy): string {
  if (wait === undefined) return `${member} ${state}`
  const deadline = wait.until === undefined ? '' : `, until ${wait.until.slice(11, 19)}`
  return `${member} ${state}, waits for ${gateText(wait.gate).waitsFor} (${wait.gate}${deadline})`
}

function stuckText(open: readonly KubeObject[], { cluster }: Moved): string {
  const nowMs = Date.now()
  const findings = open.flatMap((workload) => explainObject(workload, { cluster, nowMs }))
  const urgent = findings.filter(({ state }) => state === 'wrong' || state === 'waits')
  return findingsText(urgent, nowMs)
}
