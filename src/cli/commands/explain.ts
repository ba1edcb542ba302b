// `kcp explain`: "why is nothing happening?" for an object, a logical cluster or a member. Joins conditions, copies and
// their waits, Events, the decision of placement and the faults of the installation.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { memberClusters, workloadKindOf } from '#crds/index.ts'
import {
  explainCluster,
  explainMember,
  explainObject,
  findingsText,
  type Finding,
  type SeenObject,
  type Surroundings,
} from '#explain/index.ts'
import { explainWorkload } from '#operator/index.ts'
import { createLogger } from '#telemetry/index.ts'
import { directOf, type Direct } from '#cli/across/direct.ts'
import { findResource, type FoundResource } from '#cli/across/find-resource.ts'
import { workloadsIn } from '#cli/across/workloads.ts'
import { ExitError, UsageError } from '#cli/process/exit-error.ts'
import { processSignal } from '#cli/process/process-signal.ts'
import { startProgress, type Progress } from '#cli/process/progress.ts'
import { clusterOf, logicalClusterOf, memberOf, nameOfLogicalCluster } from './credentials.ts'
import { diagnoseProcesses } from './diagnose.ts'
import type { InstallationFlags } from './flags.ts'
import { openDirect, openInstallation, openPlacement, type Installation } from './installation.ts'
import { currentKcpContext } from './kubeconfig-file.ts'
import { documentText, printable } from './output.ts'
import { explanationText } from './placement-explain.ts'

interface Flags extends InstallationFlags {
  readonly cluster?: string
  readonly namespace?: string
  readonly output: 'text' | 'json' | 'yaml'
}

const core = (resource: string): { readonly group: ''; readonly version: 'v1'; readonly resource: string } => ({
  ...{ group: '', version: 'v1', resource },
})
const endpointSlices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' } as const
const memberWords: readonly string[] = ['member', 'members', 'mc', 'membercluster', 'memberclusters']
const clusterWords: readonly string[] = ['lc', 'logicalcluster', 'logicalclusters']

interface Explanation {
  readonly findings: readonly Finding[]
  /** What placement says of each member, for a workload. */
  readonly placement?: string
}

/** Runs the command. */
export async function run(text: string | undefined, flags: Flags): Promise<void> {
  const signal = processSignal()
  const progress = startProgress()
  try {
    progress.tell('reading')
    await using installation = await openInstallation(flags, signal)
    const { findings, placement } = await explained(text, { flags, installation, progress, signal })
    const faults = await diagnoseProcesses(installation.found, signal)
    const all = [...faults.filter(({ ok }) => !ok).map(faultFinding), ...findings]
    progress[Symbol.dispose]()
    if (flags.output !== 'text') {
      process.stdout.write(documentText({ findings: all, ...(placement !== undefined && { placement }) }, flags.output))
      return
    }
    console.log(printable(findingsText(all, Date.now())))
    if (placement !== undefined) console.log(`\nThe decision of placement:\n${printable(placement)}`)
  } finally {
    progress[Symbol.dispose]()
  }
}

function faultFinding({ what, todo }: { readonly what: string; readonly todo?: string }): Finding {
  const subject = { kind: 'Installation', name: 'kcp' }
  return { subject, state: 'wrong', what, ...(todo !== undefined && { todo }) }
}

interface Asked {
  readonly flags: Flags
  readonly installation: Installation
  readonly progress: Progress
  readonly signal: AbortSignal
}

async function explained(text: string | undefined, asked: Asked): Promise<Explanation> {
  const [kind = '', name] = (text ?? '').split('/')
  if (name === '') throw new UsageError(`"${text ?? ''}" is not KIND/NAME, nor the name of a logical cluster`)
  if (name === undefined) return explainWhole(text ?? (await clusterOf(asked.flags)), asked)
  if (memberWords.includes(kind.toLowerCase())) return explainOneMember(name, asked)
  if (clusterWords.includes(kind.toLowerCase())) return explainWhole(name, asked)
  return explainOne({ kind, name }, asked)
}

async function explainOneMember(name: string, { installation, signal }: Asked): Promise<Explanation> {
  return { findings: explainMember(await memberOf(installation, name, signal)) }
}

async function explainWhole(text: string, { installation, progress, signal }: Asked): Promise<Explanation> {
  const cluster = nameOfLogicalCluster(text)
  const logicalCluster = await logicalClusterOf(installation, cluster, signal)
  await using transport = await openDirect(installation)
  const direct = directOf(transport, signal)
  progress.tell(`reading logical cluster ${cluster}`)
  const listed = (resource: string): Promise<KubeObject[]> => list(direct, cluster, core(resource))
  const [members, workloads, namespaces, pods, events, claims] = await Promise.all([
    membersOf(installation, signal),
    workloadsIn(direct, cluster),
    listed('namespaces'),
    listed('pods'),
    listed('events'),
    listed('persistentvolumeclaims'),
  ])
  const objects = [
    ...workloads.filter(({ kind }) => kind !== 'Pod' && kind !== 'ReplicaSet'),
    ...withKind(claims, 'PersistentVolumeClaim'),
  ]
  const findings = explainCluster({
    ...{ cluster, logicalCluster, nowMs: Date.now(), members, objects },
    ...{ namespaces: withKind(namespaces, 'Namespace'), pods: withKind(pods, 'Pod'), events },
  })
  return { findings }
}

async function explainOne(named: { readonly kind: string; readonly name: string }, asked: Asked): Promise<Explanation> {
  const { flags, installation, progress, signal } = asked
  const cluster = await clusterOf(flags)
  const logicalCluster = await logicalClusterOf(installation, cluster, signal)
  await using transport = await openDirect(installation)
  const direct = directOf(transport, signal)
  const resource = await findResource(direct, named.kind, cluster)
  const namespace = flags.namespace ?? (await currentKcpContext())?.namespace ?? 'default'
  const where = { name: named.name, ...(resource.namespaced && { namespace }) }
  const object = await direct.client(cluster).tryGet(resource.gvr, where, { signal })
  if (object === undefined) {
    const path = resource.namespaced ? `${namespace}/${named.name}` : named.name
    throw new ExitError(`there is no ${resource.kind} "${path}" in logical cluster "${cluster}"`)
  }
  const members = await membersOf(installation, signal)
  const around = resource.namespaced ? await surroundingsIn(direct, { cluster, namespace, object }) : {}
  const findings = explainObject(object, { ...around, cluster, logicalCluster, members, nowMs: Date.now() })
  progress.tell('reading what placement says')
  const placement =
    members.length === 0 ? undefined : await placementText({ ...named, cluster, namespace }, resource, asked)
  return { findings, ...(placement !== undefined && { placement }) }
}

async function surroundingsIn(
  direct: Direct,
  { cluster, namespace, object }: { readonly cluster: string; readonly namespace: string; readonly object: KubeObject },
): Promise<Partial<Surroundings>> {
  const [pods, events, slices, ofNamespace] = await Promise.all([
    list(direct, cluster, core('pods'), namespace),
    list(direct, cluster, core('events'), namespace),
    object.kind === 'Service' ? list(direct, cluster, endpointSlices, namespace) : undefined,
    direct.client(cluster).tryGet(core('namespaces'), { name: namespace }, { signal: direct.signal }),
  ])
  return {
    events,
    pods: withKind(await podsOf(direct, { cluster, namespace, object, pods }), 'Pod'),
    ...(slices !== undefined && { endpointSlices: slices }),
    ...(ofNamespace !== undefined && { namespace: ofNamespace }),
  }
}

/** The pods that the object owns, by itself or by ReplicaSets or Jobs of its own. */
async function podsOf(
  direct: Direct,
  { cluster, namespace, object, pods }: { cluster: string; namespace: string; object: KubeObject; pods: KubeObject[] },
): Promise<KubeObject[]> {
  const owners = new Set([object.metadata.uid ?? ''])
  const between = { Deployment: ['apps', 'replicasets'], CronJob: ['batch', 'jobs'] }[object.kind]
  if (between !== undefined) {
    const [group = '', resource = ''] = between
    const made = await list(direct, cluster, { group, version: 'v1', resource }, namespace)
    for (const one of made) if (isOwned(one, owners)) owners.add(one.metadata.uid ?? '')
  }
  return pods.filter((pod) => isOwned(pod, owners))
}

function isOwned({ metadata }: KubeObject, uids: ReadonlySet<string>): boolean {
  return (metadata.ownerReferences ?? []).some(({ uid }) => uids.has(uid))
}

async function placementText(
  { name, cluster, namespace }: { readonly name: string; readonly cluster: string; readonly namespace: string },
  { gvr }: FoundResource,
  { installation, signal }: Asked,
): Promise<string | undefined> {
  const kind = workloadKindOf(gvr.resource)
  if (kind?.gvr.group !== gvr.group) return undefined
  await using placement = await openPlacement(installation, { log: createLogger({ level: 'error' }), signal })
  const found = explainWorkload(placement.inputs, { kind, cluster, namespace, name })
  return found === undefined ? undefined : explanationText(found)
}

async function membersOf({ clusters }: Installation, signal: AbortSignal): Promise<SeenObject[]> {
  const { items } = await clusters.list(memberClusters, { signal })
  return withKind(items, 'MemberCluster')
}

async function list(
  { client, signal }: Direct,
  cluster: string,
  gvr: Parameters<ReturnType<Direct['client']>['list']>[0],
  namespace?: string,
): Promise<KubeObject[]> {
  try {
    return (await client(cluster).list(gvr, { signal, ...(namespace !== undefined && { namespace }) })).items
  } catch (error) {
    // A kind that is not served has no objects.
    if (isStatusError(error, 'NotFound')) return []
    throw error
  }
}

/** Items of a list have no kind of their own. */
function withKind(objects: readonly SeenObject[] = [], kind: string): KubeObject[] {
  return objects.map((object) => ({ ...(object as KubeObject), kind }))
}
