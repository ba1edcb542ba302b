// Writes the objects of joining, in the member and in the installation, and finds what is registered already.
import type { GroupVersionResource, KubeObject, OwnerReference } from '#apimachinery/meta/index.ts'
import { badRequest, conflict, isStatusError, serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import { sleep } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  definitionName,
  kubeSystemUidAnnotation,
  memberClusters,
  systemNamespace,
  type ExportedApi,
  type MemberCluster,
  type ServiceNetwork,
} from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { memberPolicy } from './member-policy.ts'

const core = (resource: string): GroupVersionResource => ({ group: '', version: 'v1', resource })
const namespaces = core('namespaces')

/** The options of joining in push and in pull mode. */
export interface JoiningOptions {
  /** The name of the MemberCluster. */
  readonly name: string
  /** The API with the MemberClusters: the host's, or that of logical cluster `root`. */
  readonly clusters: KubeClient
  /** Default: that of the member, or None. */
  readonly serviceNetwork?: ServiceNetwork
  /** APIs that it exports from now on, besides those it exports already. */
  readonly exported?: readonly ExportedApi[]
  readonly log: Logger
  readonly signal: AbortSignal
}

/** Rejects with BadRequest for a name that no member may have. */
export function requireMemberName(name: string): void {
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))
    throw badRequest(
      `"${name}" is not a valid name of a member cluster: lower-case letters, digits and "-", at most 63 characters`,
    )
}

/** The APIs that the member exports already, and those that are added. */
export function withExports(existing: MemberCluster | undefined, added: readonly ExportedApi[]): ExportedApi[] {
  const known = existing?.spec?.exportedAPIs ?? []
  const isNew = (one: ExportedApi): boolean => known.every((other) => definitionName(one) !== definitionName(other))
  return [...known, ...added.filter(isNew)]
}

/** The uid of a cluster's kube-system. Rejects with BadRequest for a logical cluster. */
export async function readUid(member: KubeClient, server: string, signal: AbortSignal): Promise<string> {
  const { metadata } = await member.get<KubeObject>(namespaces, { name: 'kube-system' }, { signal })
  await refuseKcp(member, server, signal)
  return metadata.uid ?? ''
}

/** Rejects a logical cluster as a member, an easy mistake: it has no nodes, so workloads there would never run. */
async function refuseKcp(member: KubeClient, server: string, signal: AbortSignal): Promise<void> {
  const { gitVersion = '' } = ((await member.raw('/version', { signal })) ?? {}) as { gitVersion?: string }
  if (gitVersion.includes('+kcp-'))
    throw badRequest(
      `"${server}" is a logical cluster of kcp, which runs no pods: give the kubeconfig of a real cluster`,
    )
}

/**
 * Waits while the namespace of a former registration is being deleted: an identity created in it now would go with it.
 */
export async function untilFormerIsGone(member: KubeClient, signal: AbortSignal): Promise<void> {
  for (let attempt = 0; attempt < 120; attempt++) {
    const found = await member.tryGet<KubeObject>(namespaces, { name: systemNamespace }, { signal })
    if (found?.metadata.deletionTimestamp === undefined) return
    await sleep(500, signal)
  }
  throw serviceUnavailable(`namespace "${systemNamespace}" in the member is still being deleted after 60 s`)
}

/** The uid of kube-system beside the MemberClusters; undefined if it is not there, or may not be read. */
export async function installationOf(clusters: KubeClient, signal: AbortSignal): Promise<string | undefined> {
  const found = await clusters
    .tryGet<KubeObject>(namespaces, { name: 'kube-system' }, { signal })
    .catch(tolerate('Forbidden'))
  return found?.metadata.uid
}

/** Rejects a second name for one physical cluster, which would be counted, filled and cleaned up twice. */
export async function refuseTwice(
  clusters: KubeClient,
  name: string,
  uid: string,
  signal: AbortSignal,
): Promise<MemberCluster | undefined> {
  const { items } = await clusters.list<MemberCluster>(memberClusters, { signal })
  const twin = items.find((item) => item.metadata.name !== name && memberUid(item) === uid)
  if (twin) throw conflict(memberClusters, name, `this cluster is registered already, as "${twin.metadata.name}"`)
  const existing = items.find((item) => item.metadata.name === name)
  const known = existing && memberUid(existing)
  if (known !== undefined && known !== uid)
    throw conflict(
      memberClusters,
      name,
      'another cluster is registered under this name: choose another one, or delete that MemberCluster first',
    )
  return existing
}

function memberUid({ metadata, status }: MemberCluster): string | undefined {
  return status?.id ?? metadata.annotations?.[kubeSystemUidAnnotation]
}

const resources: Readonly<Record<string, GroupVersionResource>> = {
  Namespace: namespaces,
  Secret: core('secrets'),
  ServiceAccount: core('serviceaccounts'),
  Deployment: { group: 'apps', version: 'v1', resource: 'deployments' },
  ClusterRole: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles' },
  ClusterRoleBinding: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterrolebindings' },
  Role: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'roles' },
  RoleBinding: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'rolebindings' },
  ValidatingAdmissionPolicy: {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    resource: 'validatingadmissionpolicies',
  },
  ValidatingAdmissionPolicyBinding: {
    group: 'admissionregistration.k8s.io',
    version: 'v1',
    resource: 'validatingadmissionpolicybindings',
  },
  MemberCluster: memberClusters,
}

export async function apply(client: KubeClient, object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
  const gvr = resources[object.kind]
  if (gvr === undefined) throw badRequest(`"${object.kind}" is not created by joining`)
  const { name = '', namespace } = object.metadata
  return await client.patch(gvr, { name, ...(namespace && { namespace }) }, 'apply', object, {
    fieldManager: 'kcp-join',
    force: true,
    signal,
  })
}

/**
 * Applies the objects of memberObjects: the first one owns the second, and the second all others. Resolves with the
 * reference to the second.
 */
export async function applyOwned(
  member: KubeClient,
  objects: readonly KubeObject[],
  signal: AbortSignal,
): Promise<OwnerReference | undefined> {
  let owner: OwnerReference | undefined
  for (const [index, object] of objects.entries()) {
    const applied = await apply(member, ownedBy(owner, object), signal)
    if (index < 2) owner = referenceTo(applied)
  }
  return owner
}

export function ownedBy(owner: OwnerReference | undefined, object: KubeObject): KubeObject {
  return owner === undefined ? object : { ...object, metadata: { ...object.metadata, ownerReferences: [owner] } }
}

function referenceTo({ apiVersion, kind, metadata: { name = '', uid = '' } }: KubeObject): OwnerReference {
  return { apiVersion, kind, name, uid }
}

/** Members before Kubernetes 1.30 have no such policies: there only RBAC confines the syncer, which is logged. */
export async function applyPolicy(
  member: KubeClient,
  { name, owner, log }: { readonly name: string; readonly owner: OwnerReference | undefined; readonly log: Logger },
  signal: AbortSignal,
): Promise<void> {
  try {
    for (const object of memberPolicy()) await apply(member, ownedBy(owner, object), signal)
  } catch (error) {
    if (!isStatusError(error, 'NotFound')) throw error
    log.warn('the member has no ValidatingAdmissionPolicies: only RBAC confines the syncer there', { member: name })
  }
}
