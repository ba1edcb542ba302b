// The controller that shows MemberClusters, and LogicalClusters that others may use, as ClusterProfiles, where the API
// with these objects (the host, or logical cluster `root`) has that CustomResourceDefinition.
import { isDeepStrictEqual } from 'node:util'
import type { Condition, GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { sleep } from '#async/index.ts'
import { createInformer, type DeepReadonly, type KubeClient } from '#client/index.ts'
import {
  findCondition,
  type LogicalCluster,
  logicalClusters,
  type MemberCluster,
  memberClusters,
  memberState,
} from '#crds/index.ts'
import { runLoop, type Loop } from '#operator/framework/loop.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'

interface ClusterProfilesDeps {
  /** The namespace in which the profiles are written: that of our processes. */
  readonly namespace: string
  /** Whether the controller makes the namespace. Default false: in a host it exists. */
  readonly makesNamespace?: boolean
  /** Seconds between checks whether the host has the CustomResourceDefinition. Default 60. */
  readonly lookAgainSeconds?: number
}

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const fieldManager = 'kcp-cluster-profiles'

/** Keeps a ClusterProfile for each MemberCluster. */
export function clusterProfilesController({
  namespace,
  makesNamespace = false,
  lookAgainSeconds = 60,
}: ClusterProfilesDeps): OperatorController {
  return {
    name: 'cluster-profiles',
    async run(context, { signal, started }) {
      // Without the CustomResourceDefinition the operator works as well.
      started()
      try {
        const gvr = await untilServed(context, lookAgainSeconds, signal)
        if (makesNamespace) await ensureNamespace(context.clusters, namespace, signal)
        await keep(context, { gvr, namespace, signal })
      } catch (error) {
        if (!signal.aborted) throw error
      }
    },
  }
}

async function ensureNamespace(client: KubeClient, name: string, signal: AbortSignal): Promise<void> {
  const object: KubeObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name } }
  await client.create(namespaces, object, { signal }).catch(tolerate('AlreadyExists'))
}

/** Resolves with the newest version that is served, as soon as it serves one. Rejects with signal.reason. */
async function untilServed(
  { clusters, log }: OperatorContext,
  lookAgainSeconds: number,
  signal: AbortSignal,
): Promise<GroupVersionResource> {
  let isTold = false
  for (;;) {
    for (const version of clusterProfileVersions) {
      const gvr = { group: clusterProfileGroup, version, resource: 'clusterprofiles' }
      if (await isServed(clusters, gvr, signal)) return gvr
    }
    if (!isTold)
      log.warn('there is no CustomResourceDefinition for ClusterProfiles; install that of the Cluster Inventory API', {
        group: clusterProfileGroup,
        versions: clusterProfileVersions.join(','),
      })
    isTold = true
    await sleep(lookAgainSeconds * 1000, signal)
  }
}

/** Whether discovery lists the resource: other kinds may be in the same group version. A StatusError counts as no. */
async function isServed(client: KubeClient, gvr: GroupVersionResource, signal: AbortSignal): Promise<boolean> {
  try {
    const found = (await client.raw(`/apis/${gvr.group}/${gvr.version}`, { signal })) as
      { resources?: { name: string }[] } | undefined
    return found?.resources?.some(({ name }) => name === gvr.resource) ?? false
  } catch (error) {
    if (!isStatusError(error)) throw error
    return false
  }
}

interface Keeping {
  readonly gvr: GroupVersionResource
  readonly namespace: string
  readonly signal: AbortSignal
}

/** The addresses at which others use clusters through kcp. */
interface Addresses {
  readonly member: (name: string) => string | undefined
  readonly logicalCluster: (name: string) => string | undefined
  /** PEM. */
  readonly servingCa: string
}

function addressesOf({ urls, issuer: { servingCa } }: OperatorContext): Addresses {
  const logicalCluster = (name: string): string | undefined => urls(name).directURL
  return {
    member: (name) => {
      const direct = logicalCluster(name)
      return direct === undefined ? undefined : `${new URL(direct).origin}/services/members/${name}`
    },
    logicalCluster,
    servingCa,
  }
}

async function keep(context: OperatorContext, { gvr, namespace, signal }: Keeping): Promise<void> {
  const { clusters, informers, log } = context
  const members = informers.of<MemberCluster>(memberClusters)
  const tenants = informers.of<LogicalCluster>(logicalClusters)
  const labelSelector = Object.entries(clusterManagerLabels)
    .map(([name, value]) => `${name}=${value}`)
    .join(',')
  await using profiles = createInformer<ClusterProfile>({
    client: clusters,
    gvr,
    namespace,
    labelSelector,
    log,
    signal,
  })
  const where = { namespace, version: gvr.version, addresses: addressesOf(context) }
  const ofMember = (member: DeepReadonly<MemberCluster> | undefined) => member && clusterProfileOf(member, where)
  const ofTenant = (tenant: DeepReadonly<LogicalCluster> | undefined) => tenant && tenantProfileOf(tenant, where)
  const find = (name: string) => profiles.store.list().find(({ metadata }) => metadata.name === name)
  const loop: Loop = {
    name: 'cluster-profiles',
    workers: 1,
    maxMs: 60_000,
    fairnessKey: () => '',
    informers: [members, tenants, profiles],
    follow: (add) => [
      members.onChange(({ key, before, after }) => {
        // Most changes are heartbeats, which no profile shows.
        if (!isDeepStrictEqual(ofMember(before), ofMember(after))) add(key)
      }),
      tenants.onChange(({ key, before, after }) => {
        // Most logical clusters are for nobody else, and have no profile.
        if (before?.spec?.access === undefined && after?.spec?.access === undefined) return
        if (!isDeepStrictEqual(ofTenant(before), ofTenant(after))) add(`${key}${tenantSuffix}`)
      }),
      profiles.onChange(({ before, after }) => add((after ?? before)?.metadata.name ?? '')),
    ],
    reconcile: async (name, signal) => {
      const found = find(name)
      const tenant = name.endsWith(tenantSuffix) ? tenants.store.get(name.slice(0, -tenantSuffix.length)) : undefined
      // The profile of a logical cluster that was opened once stays, without a way in.
      const isShown = tenant?.spec?.access !== undefined || (found !== undefined && isOwnedBy(found, tenant))
      const profile = ofMember(members.store.get(name)) ?? (isShown ? ofTenant(tenant) : undefined)
      // The host's garbage collector deletes the profile of a cluster that is gone.
      if (profile === undefined) return
      await apply(profile, found, { client: clusters, gvr, signal })
    },
  }
  await runLoop(loop, { log }, signal)
}

function isOwnedBy(profile: DeepReadonly<ClusterProfile>, owner: DeepReadonly<KubeObject> | undefined): boolean {
  const uid = owner?.metadata.uid
  return uid !== undefined && profile.metadata.ownerReferences?.some((one) => one.uid === uid) === true
}

/** Applies without force: a profile of that name that somebody else wrote stays theirs, and 409 Conflict is logged. */
async function apply(
  { status, ...profile }: ReturnType<typeof clusterProfileOf>,
  found: DeepReadonly<ClusterProfile> | undefined,
  { client, gvr, signal }: { client: KubeClient; gvr: GroupVersionResource; signal: AbortSignal },
): Promise<void> {
  const { name, namespace, labels, ownerReferences } = profile.metadata
  const ref = { name: name ?? '', ...(namespace !== undefined && { namespace }) }
  const options = { fieldManager, signal }
  const isWritten =
    found !== undefined &&
    isDeepStrictEqual(found.spec, profile.spec) &&
    isDeepStrictEqual(found.metadata.ownerReferences, ownerReferences) &&
    Object.entries(labels ?? {}).every(([label, value]) => found.metadata.labels?.[label] === value)
  if (!isWritten) await client.patch(gvr, ref, 'apply', profile, options)
  if (isDeepStrictEqual(found?.status, status)) return
  const { apiVersion, kind } = profile
  const body = { apiVersion, kind, metadata: ref, status }
  await client.patch(gvr, ref, 'apply', body, { ...options, subresource: 'status' })
}

const clusterProfileGroup = 'multicluster.x-k8s.io'
/** Newest first: where the host serves several, the first is used. What we write is the same in all. */
const clusterProfileVersions = ['v1alpha2', 'v1alpha1'] as const

/** The manager of these clusters: `spec.clusterManager.name`, and the label by which its profiles are found. */
const clusterManager = 'kcp'
const clusterManagerLabels = { 'x-k8s.io/cluster-manager': clusterManager } as const
const memberIdLabel = 'multicluster.x-k8s.io/inventory-member-id'

interface ClusterProfile extends KubeObject {
  spec: { displayName?: string; clusterManager: { name: string } }
  status?: ClusterProfileStatus
}

interface ClusterProfileStatus {
  conditions: Condition[]
  version?: { kubernetes?: string }
  properties: { name: string; value: string }[]
  accessProviders?: AccessProvider[]
}

/** How clients get in: the plugin for this name gives them a token (KEP-5339). */
interface AccessProvider {
  name: string
  cluster: { server: string; 'certificate-authority-data': string }
}

/** The name for which clients of ClusterProfiles configure the command `kcp access`. */
export const accessProvider = 'kcp'
/** The profile of logical cluster `acme` is `acme.logicalcluster`; names of members have no dots. */
const tenantSuffix = '.logicalcluster'

interface Where {
  readonly namespace: string
  readonly version: string
  readonly addresses: Addresses
}

/**
 * The profile of this member. It belongs to the MemberCluster, so that it is deleted with it. It contains no
 * credentials, and an address only if spec.access gives others a way in.
 */
export function clusterProfileOf(
  member: DeepReadonly<MemberCluster>,
  { addresses, ...where }: Where,
): ClusterProfile & { status: ClusterProfileStatus } {
  const { name } = member.metadata
  const { id, version: kubernetes } = member.status ?? {}
  return {
    ...profileOf(member, { ...where, name, labels: id === undefined ? {} : { [memberIdLabel]: id } }),
    status: {
      conditions: [
        conditionOf(member, 'Ready', 'ControlPlaneHealthy'),
        conditionOf(member, 'Accepted', 'Joined'),
      ].filter((condition) => condition !== undefined),
      ...(kubernetes !== undefined && { version: { kubernetes } }),
      properties: propertiesOf(member),
      ...providersOf(member, addresses.member(name), addresses),
    },
  }
}

/** The profile of this logical cluster. It belongs to the LogicalCluster. */
export function tenantProfileOf(
  tenant: DeepReadonly<LogicalCluster>,
  { addresses, ...where }: Where,
): ClusterProfile & { status: ClusterProfileStatus } {
  const { name } = tenant.metadata
  const id = tenant.status?.id
  const labels = id === undefined ? {} : { [memberIdLabel]: id }
  const healthy = conditionOf(tenant, 'Ready', 'ControlPlaneHealthy')
  return {
    ...profileOf(tenant, { ...where, name: `${name}${tenantSuffix}`, labels }),
    status: {
      conditions: healthy === undefined ? [] : [healthy],
      properties: [{ name: 'kcp.dev/logical-cluster', value: name }],
      ...providersOf(tenant, addresses.logicalCluster(name), addresses),
    },
  }
}

function profileOf(
  { apiVersion, kind, metadata }: DeepReadonly<MemberCluster | LogicalCluster>,
  of: Omit<Where, 'addresses'> & { readonly name: string; readonly labels: Readonly<Record<string, string>> },
): ClusterProfile {
  const { name: displayName, uid = '' } = metadata
  const { name, namespace, version, labels } = of
  return {
    apiVersion: `${clusterProfileGroup}/${version}`,
    kind: 'ClusterProfile',
    metadata: {
      name,
      namespace,
      labels: { ...clusterManagerLabels, ...labels },
      ownerReferences: [{ apiVersion, kind, name: displayName, uid }],
    },
    spec: { displayName, clusterManager: { name: clusterManager } },
  }
}

function providersOf(
  { spec }: DeepReadonly<MemberCluster | LogicalCluster>,
  server: string | undefined,
  { servingCa }: Addresses,
): Pick<ClusterProfileStatus, 'accessProviders'> {
  if (spec?.access === undefined || server === undefined) return {}
  const cluster = { server, 'certificate-authority-data': Buffer.from(servingCa).toString('base64') }
  return { accessProviders: [{ name: accessProvider, cluster }] }
}

/** The member's condition `from` under the name that the KEP has for it; undefined until the member was asked. */
function conditionOf(
  member: DeepReadonly<MemberCluster | LogicalCluster>,
  from: string,
  type: string,
): Condition | undefined {
  const found = findCondition(member, from)
  if (found === undefined) return undefined
  const { status, reason, message, lastTransitionTime } = found
  return { type, status, reason, message, lastTransitionTime }
}

function propertiesOf(member: DeepReadonly<MemberCluster>): ClusterProfileStatus['properties'] {
  const { nodes, allocatable } = member.status ?? {}
  const values: Record<string, string | undefined> = {
    'kcp.dev/state': memberState(member),
    'kcp.dev/nodes': nodes?.total.toString(),
    'kcp.dev/ready-nodes': nodes?.ready.toString(),
    'kcp.dev/allocatable-cpu': allocatable?.['cpu'],
    'kcp.dev/allocatable-memory': allocatable?.['memory'],
  }
  // The CRD refuses an empty value.
  return Object.entries(values).flatMap(([name, value]) =>
    value === undefined || value === '' ? [] : [{ name, value }],
  )
}
