// Registers a physical cluster that kcp can reach (push): creates the syncer's identity in it, and a MemberCluster for
// it.
import { stringify } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { conflict, serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
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
import {
  apply,
  applyOwned,
  applyPolicy,
  installationOf,
  readUid,
  refuseTwice,
  requireMemberName,
  untilFormerIsGone,
  withExports,
  type JoiningOptions,
} from './join-objects.ts'
import { memberObjects } from './member-objects.ts'

const secrets = { group: '', version: 'v1', resource: 'secrets' } as const
const serviceAccounts = { group: '', version: 'v1', resource: 'serviceaccounts' } as const
const configMaps = { group: '', version: 'v1', resource: 'configmaps' } as const

/**
 * Nothing uses these objects any more: the token that does not expire is that of earlier releases, the others are those
 * of an agent.
 */
const formerParts = [
  { gvr: secrets, name: memberParts.tokenSecret },
  { gvr: { group: 'apps', version: 'v1', resource: 'deployments' }, name: memberParts.agent },
  { gvr: { group: '', version: 'v1', resource: 'services' }, name: memberParts.agent },
  { gvr: secrets, name: memberParts.agent },
  { gvr: secrets, name: memberParts.agentJoin },
  { gvr: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'rolebindings' }, name: memberParts.agent },
  { gvr: { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'roles' }, name: memberParts.agent },
] as const

export interface JoinOptions extends JoiningOptions {
  /** An admin's kubeconfig of the member. Used once and not stored. */
  readonly memberKubeconfig: Kubeconfig
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
  serviceNetwork: wantedNetwork,
  exported = [],
  log,
  signal,
}: JoinOptions): Promise<JoinedMember> {
  requireMemberName(name)
  await using transport = boundedTransport(httpTransport(memberKubeconfig))
  const member = createClient(transport, untrustedServer)
  const uid = await readUid(member, memberKubeconfig.server, signal)
  const existing = await refuseTwice(clusters, name, uid, signal)
  if (existing?.metadata.deletionTimestamp !== undefined)
    throw conflict(memberClusters, name, 'it is being deleted: join again when it has gone')
  await untilFormerIsGone(member, signal)
  const installation = await installationOf(clusters, signal)
  const account = { namespace: systemNamespace, name: memberParts.syncerAccount }
  const takenFrom = otherOwnerOf(await member.tryGet<KubeObject>(serviceAccounts, account, { signal }), installation)
  const exportedAPIs = withExports(existing, exported)
  const owner = await applyOwned(member, memberObjects(exportedAPIs, installation), signal)
  await applyPolicy(member, { name, owner, log }, signal)
  log.info('created an identity for the syncer in the member', { member: name })
  const endpoint = await memberKubeconfig.endpoint()
  const token = await requestMemberToken(member, signal)
  const ca = endpoint.ca === undefined ? await readCa(member, signal) : Buffer.from(endpoint.ca).toString()
  const kubeconfig = plainKubeconfig(memberKubeconfig.server, endpoint, { token, ca })
  const serviceNetwork = wantedNetwork ?? existing?.spec?.serviceNetwork?.type ?? 'None'
  await register({ clusters, name, uid, installation, kubeconfig, serviceNetwork, exportedAPIs, existing, signal })
  for (const { gvr, name: part } of formerParts)
    await member.delete(gvr, { namespace: systemNamespace, name: part }, { signal }).catch(tolerate('NotFound'))
  return { id: memberIdOf(uid), ...(takenFrom !== undefined && { takenFrom }) }
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
  existing,
  signal,
}: Registration): Promise<void> {
  const ref = { namespace: systemNamespace, name: `member-${name}` }
  await apply(clusters, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: systemNamespace } }, signal)
  const secret: KubeObject = {
    apiVersion: 'v1',
    kind: 'Secret',
    metadata: ref,
    type: 'Opaque',
    data: { kubeconfig: Buffer.from(kubeconfig).toString('base64') },
  }
  await apply(clusters, secret, signal)
  const connection = { kubeconfigSecretRef: { ...ref, key: 'kubeconfig' } }
  // The agent of a member that was in pull mode does not count any more, whoever has written that mode.
  if (existing?.spec?.connection?.agent !== undefined || existing?.spec?.agent !== undefined) {
    const patch = { spec: { connection: { ...connection, agent: null }, agent: null } }
    await clusters.patch(memberClusters, { name }, 'merge', patch, { signal })
  }
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
      connection,
      serviceNetwork: { type: serviceNetwork },
      ...(exportedAPIs.length > 0 && { exportedAPIs: [...exportedAPIs] }),
    },
  }
  await apply(clusters, object, signal)
}
