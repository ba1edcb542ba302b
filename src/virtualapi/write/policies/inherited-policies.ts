// The admission policies of other logical clusters that act in a logical cluster. Of ancestors: policies with a binding
// that has label kcp.dev/inherit, except policies that the logical cluster excludes and the ancestor lets it exclude.
// Of the provider of a bound resource: policies that its export brings.
import type { Ancestor, Ancestors } from '#virtualapi/hierarchy/ancestors.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { Provider } from '#virtualapi/write/admission/provider-admission.ts'
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

/** The policies of a provider that its export brings. */
export function providedPolicies<P>(index: Pick<PolicyIndex<P>, 'bound'>, from: Provider): BoundPolicy<P>[] {
  return index
    .bound(from.objects)
    .filter(({ name }) => from.brings('policies', name))
    .map((policy) => ({ ...policy, from }))
}

/**
 * The request as the policy reads its parameters: in the logical cluster that has the policy. A consumer must not choose
 * among the parameters of its provider by the name of a namespace, so the provider gets none.
 */
export function atPolicy<P>(request: AdmissionRequest, { from }: BoundPolicy<P>): AdmissionRequest {
  if (from === undefined) return request
  const { cluster, objects, exportName } = from
  const namespace = exportName === undefined ? request.namespace : ''
  return { ...request, namespace, context: { ...request.context, cluster, objects } }
}

/** The policy in messages, with the logical cluster that has it. */
export function policyText<P>({ name, from }: Pick<BoundPolicy<P>, 'name' | 'from'>): string {
  if (from === undefined) return `'${name}'`
  const { cluster, exportName } = from
  if (exportName === undefined) return `'${name}' inherited from logical cluster '${cluster.name}'`
  return `'${name}' of APIExport '${exportName}' in logical cluster '${cluster.name}'`
}
