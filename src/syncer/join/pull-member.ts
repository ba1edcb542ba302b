// Registers a physical cluster that kcp cannot reach (pull): a MemberCluster that waits for an agent, and the objects
// that an admin of the cluster applies in it. The agent dials out to us.
import { createHash, randomBytes } from 'node:crypto'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { badRequest, conflict } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import {
  boundedTransport,
  createClient,
  httpTransport,
  untrustedServer,
  type KubeClient,
  type Kubeconfig,
} from '#client/index.ts'
import {
  installationAnnotation,
  kubeSystemUidAnnotation,
  maxTokenMs,
  memberClusters,
  type ExportedApi,
  type MemberCluster,
} from '#crds/index.ts'
import { agentObjects, agentRules, type AgentJoin } from './agent-objects.ts'
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
import { memberPolicy } from './member-policy.ts'

export interface PullJoinOptions extends JoiningOptions, Pick<AgentJoin, 'server' | 'ca' | 'image' | 'httpProxy'> {
  /** Life of the one-time token in milliseconds, at most 24 h. */
  readonly tokenMs: number
  /** Whether the token is the approval, too. */
  readonly approves: boolean
  /** An admin's kubeconfig of the member, in which the objects are applied. Used once and not stored. */
  readonly memberKubeconfig?: Kubeconfig
}

export interface PulledMember {
  /** The objects for the member. They hold the token. */
  readonly manifest: readonly KubeObject[]
  /** RFC 3339: the end of the token. */
  readonly expires: string
  /** True if kcp reaches the member by a kubeconfig until its agent has connected. */
  readonly isSwitched: boolean
}

/**
 * Registers a member that waits for its agent. For a member that has one, the certificates of before do not count any
 * more. Rejects with Conflict if the member is being deleted, or if `memberKubeconfig` leads to another member.
 */
export async function joinByPull(options: PullJoinOptions): Promise<PulledMember> {
  const { name, clusters, tokenMs, approves, exported = [], memberKubeconfig, signal } = options
  requireMemberName(name)
  if (tokenMs > maxTokenMs) throw badRequest('a token lives for 24 h at most')
  await using target = memberKubeconfig && openMember(memberKubeconfig)
  const uid = target && (await readUid(target.client, target.server, signal))
  const existing =
    uid === undefined
      ? await clusters.tryGet<MemberCluster>(memberClusters, { name }, { signal })
      : await refuseTwice(clusters, name, uid, signal)
  if (existing?.metadata.deletionTimestamp !== undefined)
    throw conflict(memberClusters, name, 'it is being deleted: join again when it has gone')
  if (target !== undefined) await untilFormerIsGone(target.client, signal)
  const installation = await installationOf(clusters, signal)
  const exportedAPIs = withExports(existing, exported)
  const token = `kcp-join-${randomBytes(32).toString('base64url')}`
  const tokenHash = createHash('sha256').update(token).digest('hex')
  const expires = timestamp(Date.now() + tokenMs)
  const granted = { hash: tokenHash, expires, ...(approves && { approves }) }
  await register(options, { existing, uid, installation, exportedAPIs, token: granted })
  const { server, ca, image, httpProxy } = options
  const join = { server, ca, image, member: name, token, tokenHash, ...(httpProxy !== undefined && { httpProxy }) }
  if (target !== undefined) {
    const objects = [...memberObjects(exportedAPIs, installation), ...agentObjects(join)]
    const owner = await applyOwned(target.client, objects, signal)
    await applyPolicy(target.client, { name, owner, log: options.log }, signal)
  }
  const manifest = [...memberObjects(exportedAPIs, installation, agentRules), ...memberPolicy(), ...agentObjects(join)]
  return { manifest, expires, isSwitched: existing?.spec?.connection?.kubeconfigSecretRef !== undefined }
}

interface OpenMember extends AsyncDisposable {
  readonly client: KubeClient
  readonly server: string
}

function openMember(kubeconfig: Kubeconfig): OpenMember {
  const transport = boundedTransport(httpTransport(kubeconfig))
  return {
    client: createClient(transport, untrustedServer),
    server: kubeconfig.server,
    [Symbol.asyncDispose]: () => transport[Symbol.asyncDispose](),
  }
}

interface Registration {
  readonly existing: MemberCluster | undefined
  readonly uid: string | undefined
  readonly installation: string | undefined
  readonly exportedAPIs: readonly ExportedApi[]
  readonly token: { readonly hash: string; readonly expires: string; readonly approves?: boolean }
}

async function register(
  { name, clusters, serviceNetwork, signal }: PullJoinOptions,
  { existing, uid, installation, exportedAPIs, token }: Registration,
): Promise<void> {
  const knownUid = uid ?? existing?.metadata.annotations?.[kubeSystemUidAnnotation]
  const type = serviceNetwork ?? existing?.spec?.serviceNetwork?.type ?? 'None'
  const ref = existing?.spec?.connection?.kubeconfigSecretRef
  const object: MemberCluster = {
    apiVersion: 'kcp.dev/v1alpha1',
    kind: 'MemberCluster',
    metadata: {
      name,
      annotations: {
        ...(knownUid !== undefined && { [kubeSystemUidAnnotation]: knownUid }),
        ...(installation !== undefined && { [installationAnnotation]: installation }),
      },
    },
    spec: {
      // A member that is reached by a kubeconfig is reached so until its agent has connected: see the operator.
      connection: ref === undefined ? { agent: {} } : { kubeconfigSecretRef: ref },
      agent: { token },
      serviceNetwork: { type },
      ...(exportedAPIs.length > 0 && { exportedAPIs: [...exportedAPIs] }),
    },
  }
  await apply(clusters, object, signal)
}
