// Registers a physical cluster that kcp can reach (push): creates the syncer's identity in it, and a MemberCluster for
// it.
import { stringify } from 'yaml'
import type { GroupVersionResource, KubeObject, OwnerReference } from '#apimachinery/meta/index.ts'
import { badRequest, conflict, isStatusError, serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import { sleep } from '#async/index.ts'
import {
  boundedTransport,
  createClient,
  httpTransport,
  untrustedServer,
  type Endpoint,
  type KubeClient,
  type Kubeconfig,
} from '#client/index.ts'
import { requestMemberToken } from '#client/member/index.ts'
import {
  definitionName,
  installationAnnotation,
  kubeSystemUidAnnotation,
  memberClusters,
  memberIdOf,
  memberParts,
  otherOwnerOf,
  systemNamespace,
  type ExportedApi,
  type MemberCluster,
  type ServiceNetwork,
} from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { memberObjects } from './member-objects.ts'
import { memberPolicy } from './member-policy.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const
const serviceAccounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const
const configMaps = { group: '', version: 'v1', resource: 'configmaps' } as const

export interface JoinOptions {
  readonly name: string
  /** An admin's kubeconfig of the member. Used once and not stored. */
  readonly memberKubeconfig: Kubeconfig
  /** The API with the MemberClusters: the host's, or that of logical cluster `root`. */
  readonly clusters: KubeClient
  /** Default None. */
  readonly serviceNetwork?: ServiceNetwork
  /** APIs that it exports from now on, besides those it exports already. */
  readonly exported?: readonly ExportedApi[]
  readonly log: Logger
  readonly signal: AbortSignal
}

export interface JoinedMember {
  /** memberIdOf the uid of its kube-system. */
  readonly id: string
  /**
   * Another installation that had joined it, by the uid of its kube-system. Both use one identity there from now on.
   */
  readonly takenFrom?: string
}

/**
 * Joins a member. Joining it again under the same name renews everything. Rejects with Conflict if the member is
 * registered under another name, or if the name belongs to another member.
 */
export async function joinMember({
  name,
  memberKubeconfig,
  clusters,
  serviceNetwork = 'None',
  exported = [],
  log,
  signal,
}: JoinOptions): Promise<JoinedMember> {
  if (!/^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/.test(name))
    throw badRequest(
      `"${name}" is not a valid name of a member cluster: lower-case letters, digits and "-", at most 63 characters`,
    )
  await using transport = boundedTransport(httpTransport(memberKubeconfig))
  const member = createClient(transport, untrustedServer)
  const kubeSystem = await member.get<KubeObject>(namespaces, { name: 'kube-system' }, { signal })
  await refuseKcp(member, memberKubeconfig.server, signal)
  const uid = kubeSystem.metadata.uid ?? ''
  const existing = await refuseTwice(clusters, name, uid, signal)
  if (existing?.metadata.deletionTimestamp !== undefined)
    throw conflict(memberClusters, name, 'it is being deleted: join again when it has gone')
  await untilFormerIsGone(member, signal)
  const installation = await installationOf(clusters, signal)
  const account = { namespace: systemNamespace, name: memberParts.syncerAccount }
  const takenFrom = otherOwnerOf(await member.tryGet<KubeObject>(serviceAccounts, account, { signal }), installation)
  const known = existing?.spec?.exportedAPIs ?? []
  const added = exported.filter((one) => known.every((other) => definitionName(one) !== definitionName(other)))
  const exportedAPIs = [...known, ...added]
  const owner = await applyOwned(member, memberObjects(exportedAPIs, installation), signal)
  await applyPolicy(member, { name, owner, log }, signal)
  log.info('created an identity for the syncer in the member', { member: name })
  const endpoint = await memberKubeconfig.endpoint()
  const token = await requestMemberToken(member, signal)
  const ca = endpoint.ca === undefined ? await readCa(member, signal) : Buffer.from(endpoint.ca).toString()
  const kubeconfig = plainKubeconfig(memberKubeconfig.server, endpoint, { token, ca })
  await register({ clusters, name, uid, installation, kubeconfig, serviceNetwork, exportedAPIs, existing, signal })
  // In earlier releases, joining made a token that does not expire. Nothing uses it any more.
  await member
    .delete(secrets, { namespace: systemNamespace, name: memberParts.tokenSecret }, { signal })
    .catch(tolerate('NotFound'))
  return { id: memberIdOf(uid), ...(takenFrom !== undefined && { takenFrom }) }
}

/** Rejects a logical cluster as a member, an easy mistake: it has no nodes, so workloads there would never run. */
async function refuseKcp(member: KubeClient, server: string, signal: AbortSignal): Promise<void> {
  const { gitVersion = '' } = ((await member.raw('/version', { signal })) ?? {}) as { gitVersion?: string }
  if (gitVersion.includes('+kcp-'))
    throw badRequest(
      `"${server}" is a logical cluster of kcp, which runs no pods: give the kubeconfig of a real cluster`,
    )
}

/** The uid of kube-system beside the MemberClusters; undefined if it is not there, or may not be read. */
async function installationOf(clusters: KubeClient, signal: AbortSignal): Promise<string | undefined> {
  const found = await clusters
    .tryGet<KubeObject>(namespaces, { name: 'kube-system' }, { signal })
    .catch(tolerate('Forbidden'))
  return found?.metadata.uid
}

/**
 * Waits while the namespace of a former registration is being deleted: an identity created in it now would go with it.
 */
async function untilFormerIsGone(member: KubeClient, signal: AbortSignal): Promise<void> {
  for (let attempt = 0; attempt < 120; attempt++) {
    const found = await member.tryGet<KubeObject>(namespaces, { name: systemNamespace }, { signal })
    if (found?.metadata.deletionTimestamp === undefined) return
    await sleep(500, signal)
  }
  throw serviceUnavailable(`namespace "${systemNamespace}" in the member is still being deleted after 60 s`)
}

/** Rejects a second name for one physical cluster, which would be counted, filled and cleaned up twice. */
async function refuseTwice(
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
  Secret: secrets,
  ServiceAccount: serviceAccounts,
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

async function apply(client: KubeClient, object: KubeObject, signal: AbortSignal): Promise<KubeObject> {
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
async function applyOwned(
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

function ownedBy(owner: OwnerReference | undefined, object: KubeObject): KubeObject {
  return owner === undefined ? object : { ...object, metadata: { ...object.metadata, ownerReferences: [owner] } }
}

function referenceTo({ apiVersion, kind, metadata: { name = '', uid = '' } }: KubeObject): OwnerReference {
  return { apiVersion, kind, name, uid }
}

/** Members before Kubernetes 1.30 have no such policies: there only RBAC confines the syncer, which is logged. */
async function applyPolicy(
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

/**
 * The CA of the member's API, where the admin's kubeconfig has none. Waits for the member's controllers to publish it.
 */
async function readCa(member: KubeClient, signal: AbortSignal): Promise<string> {
  const ref = { namespace: systemNamespace, name: 'kube-root-ca.crt' }
  for (let attempt = 0; attempt < 100; attempt++) {
    const found = await member.tryGet<KubeObject>(configMaps, ref, { signal })
    const ca = (found?.['data'] as Record<string, string> | undefined)?.['ca.crt']
    if (ca !== undefined) return ca
    await sleep(200, signal)
  }
  throw serviceUnavailable(
    `the member did not fill ConfigMap "${systemNamespace}/kube-root-ca.crt" within 20 s: does its kube-controller-manager run?`,
  )
}

/** A kubeconfig with server, CA and token only: nothing in it runs programs or reads files. */
function plainKubeconfig(server: string, endpoint: Endpoint, { token, ca }: { token: string; ca: string }): string {
  const cluster = {
    server,
    'certificate-authority-data': Buffer.from(ca).toString('base64'),
    ...(endpoint.serverName && { 'tls-server-name': endpoint.serverName }),
  }
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'member',
    clusters: [{ name: 'member', cluster }],
    users: [{ name: memberParts.syncerAccount, user: { token } }],
    contexts: [{ name: 'member', context: { cluster: 'member', user: memberParts.syncerAccount } }],
  })
}

const systemNamespaceObject: KubeObject = {
  apiVersion: 'v1',
  kind: 'Namespace',
  metadata: { name: systemNamespace },
}

interface Registration {
  readonly clusters: KubeClient
  readonly name: string
  readonly uid: string
  readonly installation: string | undefined
  readonly kubeconfig: string
  readonly serviceNetwork: ServiceNetwork
  readonly exportedAPIs: readonly ExportedApi[]
  readonly existing: MemberCluster | undefined
  readonly signal: AbortSignal
}

async function register({
  clusters,
  name,
  uid,
  installation,
  kubeconfig,
  serviceNetwork,
  exportedAPIs,
  signal,
}: Registration): Promise<void> {
  const ref = { namespace: systemNamespace, name: `member-${name}` }
  await apply(clusters, systemNamespaceObject, signal)
  const secret: KubeObject = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: ref,
    type: 'Opaque',
    data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
  }
  await apply(clusters, secret, signal)
  const object: MemberCluster = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: {
      name,
      annotations: {
        [kubeSystemUidAnnotation]: uid,
        ...(installation !== undefined && { [installationAnnotation]: installation }),
      },
    },
    spec: {
      connection: { kubeconfigSecretRef: { ...ref, key: 'kubeconfig' } },
      serviceNetwork: { type: serviceNetwork },
      ...(exportedAPIs.length > 0 && { exportedAPIs: [...exportedAPIs] }),
    },
  }
  await apply(clusters, object, signal)
}
