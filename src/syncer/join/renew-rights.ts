// The rights of kcp in a member, brought up to this release with an admin's kubeconfig: kcp itself may not widen them.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { notFound, tolerate } from '#apimachinery/status/index.ts'
import {
  createClient,
  httpTransport,
  untrustedServer,
  boundedTransport,
  type KubeClient,
  type Kubeconfig,
} from '#client/index.ts'
import { memberClusters, memberParts } from '#crds/index.ts'
import { agentRules } from './agent-objects.ts'
import { readUid, refuseTwice } from './join-objects.ts'
import { exportRules, syncerRules } from './member-objects.ts'
import { memberPolicy } from './member-policy.ts'

const clusterRoles = { group: 'rbac.authorization.k8s.io', version: 'v1', resource: 'clusterroles' } as const
const policies = {
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  resource: 'validatingadmissionpolicies',
} as const

export interface RenewOptions {
  /** The name of the MemberCluster. */
  readonly name: string
  /** The API with the MemberClusters. */
  readonly clusters: KubeClient
  /** An admin's kubeconfig of the member. Used once and not stored. */
  readonly memberKubeconfig: Kubeconfig
  readonly signal: AbortSignal
}

/**
 * Gives the syncer of a member the rights, and the policy that confines them, of this release. Rejects with Conflict if
 * the kubeconfig leads to another cluster, with NotFound if the member has not joined.
 */
export async function renewRights({ name, clusters, memberKubeconfig, signal }: RenewOptions): Promise<void> {
  await using transport = boundedTransport(httpTransport(memberKubeconfig))
  const member = createClient(transport, untrustedServer)
  const uid = await readUid(member, memberKubeconfig.server, signal)
  const existing = await refuseTwice(clusters, name, uid, signal)
  if (existing === undefined) throw notFound(memberClusters, name)
  const { connection, exportedAPIs = [] } = existing.spec ?? {}
  const more = connection?.agent === undefined ? [] : agentRules
  const options = { fieldManager: 'kcp-join', signal }
  const rules = [...syncerRules, ...exportRules(exportedAPIs), ...more]
  await member.patch(clusterRoles, { name: memberParts.syncerAccount }, 'merge', { rules }, options)
  for (const { kind, metadata, spec } of memberPolicy() as (KubeObject & { readonly spec?: unknown })[])
    if (kind === 'ValidatingAdmissionPolicy')
      // Members before Kubernetes 1.30 have none.
      await member
        .patch(policies, { name: metadata.name ?? '' }, 'merge', { spec }, options)
        .catch(tolerate('NotFound'))
}
