// The admission policies of ancestors that act in a logical cluster: policies with a binding that has label
// kcp.dev/inherit, except policies that the logical cluster excludes and the ancestor lets it exclude.
import type { Ancestor, Ancestors } from '#virtualapi/hierarchy/ancestors.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { BoundPolicy, PolicyIndex } from './policy-index.ts'

/** The policies of the ancestors that act in this logical cluster, those of the parent first. */
export function inheritedPolicies<P>(
  index: Pick<PolicyIndex<P>, 'inheritable'>,
  cluster: LogicalCluster,
  ancestors: Ancestors,
): BoundPolicy<P>[] {
  return ancestors.all(cluster.id).flatMap((from) =>
    index
      .inheritable(from.objects)
      .filter(({ name }) => !isExcluded(name, cluster, from))
      .map((policy) => ({ ...policy, from })),
  )
}

function isExcluded(name: string, { inherit }: LogicalCluster, { cluster }: Ancestor): boolean {
  if (inherit?.exclude?.includes(name) !== true) return false
  const allowed = cluster.inherit?.allowExclusions ?? []
  return allowed.includes(name) || allowed.includes('*')
}

/** The request as the policy reads its parameters: in the logical cluster that has the policy. */
export function atPolicy<P>(request: AdmissionRequest, { from }: BoundPolicy<P>): AdmissionRequest {
  if (from === undefined) return request
  const { cluster, objects } = from
  return { ...request, context: { ...request.context, cluster, objects } }
}

/** The policy in messages, with the ancestor that has it. */
export function policyText<P>({ name, from }: Pick<BoundPolicy<P>, 'name' | 'from'>): string {
  return from === undefined ? `'${name}'` : `'${name}' inherited from logical cluster '${from.cluster.name}'`
}
