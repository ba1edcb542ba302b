// The parties of an Adoption, found by the names in its spec, and the reasons why there are none.
import { clusterIdOf, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { DeepReadonly, KubeClient } from '#client/index.ts'
import {
  adoptableLabel,
  adoptedNamespace,
  defaultPodSecurity,
  downstreamNamespace,
  locatorAnnotation,
  logicalClusters,
  memberClusters,
  parseAnnotation,
  parseDownstreamNamespace,
  systemNamespace,
  withRenewal,
  type Adoption,
  type ExportedApi,
  type LogicalCluster,
  type MemberCluster,
} from '#crds/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import type { AdoptionParties } from './steps.ts'

const namespaces = { group: '', version: 'v1', resource: 'namespaces' } as const

/** Namespaces of the cluster itself. */
const protectedNamespaces: ReadonlySet<string> = new Set([
  'default',
  'kube-system',
  'kube-public',
  'kube-node-lease',
  systemNamespace,
])

/** Why an adoption cannot go on: for the condition. */
export interface Obstacle {
  readonly reason: 'NotFound' | 'Unreachable' | 'Refused'
  readonly message: string
}

type Found = { readonly parties: AdoptionParties } | { readonly obstacle: Obstacle }

const obstacle = (reason: Obstacle['reason'], message: string): { readonly obstacle: Obstacle } => ({
  obstacle: { reason, message },
})

/** The parties, as far as the caches of the operator know them. */
export function partiesOf(
  { metadata, spec }: DeepReadonly<Adoption>,
  { informers, virtual }: OperatorContext,
  { clientOf, signal }: { readonly clientOf: (member: string) => KubeClient | undefined; readonly signal: AbortSignal },
): Found {
  const { member: name, logicalCluster: cluster, namespace: memberNamespace } = spec
  const owner = informers.of<LogicalCluster>(logicalClusters).store.get(cluster)
  if (owner === undefined || owner.metadata.deletionTimestamp !== undefined)
    return obstacle('NotFound', `there is no LogicalCluster "${cluster}"`)
  const member = informers.of<MemberCluster>(memberClusters).store.get(name)
  if (member === undefined || member.metadata.deletionTimestamp !== undefined)
    return obstacle('NotFound', `there is no MemberCluster "${name}"`)
  if (protectedNamespaces.has(memberNamespace))
    return obstacle('Refused', `namespace "${memberNamespace}" belongs to the member cluster itself`)
  if (parseDownstreamNamespace(memberNamespace) !== undefined)
    return obstacle('Refused', `namespace "${memberNamespace}" has a name as kcp makes them for logical clusters`)
  const { type: serviceNetwork = 'None' } = member.spec?.serviceNetwork ?? {}
  const downstream = clientOf(name)
  if (downstream === undefined) return obstacle('Unreachable', `member cluster "${name}" is not connected`)
  const { annotationPrefixes = [], exportedAPIs = [] } = member.spec ?? {}
  return {
    parties: {
      adoption: metadata.uid ?? '',
      member: { name, serviceNetwork, annotationPrefixes, exportedAPIs: exportedAPIs as readonly ExportedApi[] },
      downstream,
      memberNamespace,
      cluster,
      clusterId: clusterIdOf(owner.metadata.uid ?? ''),
      namespace: spec.targetNamespace ?? memberNamespace,
      upstream: virtual(`/clusters/${cluster}`),
      podSecurity: owner.spec?.podSecurity?.enforce ?? defaultPodSecurity,
      signal,
    },
  }
}

export interface Consent {
  readonly isConsented: boolean
  readonly obstacle?: Obstacle
}

/** Asks both sides whether the namespace may be adopted, and whether an admin of the member consents. */
export async function consentOf(parties: AdoptionParties): Promise<Consent> {
  const { downstream, upstream, memberNamespace, namespace, cluster, clusterId, adoption, signal } = parties
  const theirs = await downstream.tryGet<KubeObject>(namespaces, { name: memberNamespace }, { signal })
  const no = (reason: Obstacle['reason'], message: string): Consent => ({
    isConsented: false,
    obstacle: { reason, message },
  })
  if (theirs === undefined || theirs.metadata.deletionTimestamp !== undefined)
    return no('NotFound', `there is no namespace "${memberNamespace}" in the member cluster`)
  const { cluster: other, clusterId: otherId, name } = parseAnnotation(theirs, locatorAnnotation)
  if (otherId !== undefined && (otherId !== clusterId || name !== namespace))
    return no('Refused', `namespace "${memberNamespace}" belongs to logical cluster "${String(other)}" already`)
  const usual = downstreamNamespace(clusterId, namespace)
  if ((await downstream.tryGet(namespaces, { name: usual }, { signal })) !== undefined)
    return no('Refused', `namespace "${namespace}" of "${cluster}" runs in the member cluster already, as "${usual}"`)
  const ours = await upstream.tryGet<KubeObject>(namespaces, { name: namespace }, { signal })
  const record = adoptedNamespace(ours)
  if (record !== undefined && record.adoption !== adoption)
    return no('Refused', `namespace "${namespace}" of "${cluster}" was adopted from "${record.member}" already`)
  if (ours?.metadata.deletionTimestamp !== undefined)
    return no('Refused', `namespace "${namespace}" of "${cluster}" is being deleted`)
  return { isConsented: theirs.metadata.labels?.[adoptableLabel] === clusterId }
}

/** A failure of one side as an obstacle; rethrows what is none. */
export function asObstacle(error: unknown, member: string): Obstacle {
  if (!isStatusError(error)) throw error
  if (error.code >= 500 || error.code === 429 || error.code === 401)
    return { reason: 'Unreachable', message: error.message }
  return { reason: 'Refused', message: withRenewal(error.message, member) }
}
