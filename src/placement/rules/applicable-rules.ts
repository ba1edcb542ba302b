// The Placements that apply to the workloads of a namespace. Pure.
import type { DeepReadonly } from '#apimachinery/meta/index.ts'
import { matches, type Placement } from '#crds/index.ts'
import type { PlacementRule } from './target.ts'

type Labels = Readonly<Record<string, string>> | undefined
type Placements = Iterable<DeepReadonly<Placement>>

/** In levels; see targetOf. */
export interface ApplicableRules {
  readonly ofTenant: readonly PlacementRule[]
  /** The rules of admins for selected logical clusters, this one among them. */
  readonly ofCluster: readonly PlacementRule[]
  /** The rules of admins for all logical clusters. */
  readonly global: readonly PlacementRule[]
}

/** The rules for a namespace with these labels, of a logical cluster whose LogicalCluster has these labels. */
export function applicableRules(
  { ofTenant, ofAdmins }: { readonly ofTenant: Placements; readonly ofAdmins: Placements },
  { clusterLabels, namespaceLabels }: { readonly clusterLabels: Labels; readonly namespaceLabels: Labels },
): ApplicableRules {
  const found = { ofTenant: [] as PlacementRule[], ofCluster: [] as PlacementRule[], global: [] as PlacementRule[] }
  for (const placement of ofTenant)
    if (matches(placement.spec?.namespaceSelector, namespaceLabels)) found.ofTenant.push(ruleOf(placement))
  for (const placement of ofAdmins) {
    const { logicalClusterSelector: selector, namespaceSelector } = placement.spec ?? {}
    if (!matches(selector, clusterLabels) || !matches(namespaceSelector, namespaceLabels)) continue
    const selects = Object.values(selector ?? {}).some((part) => Object.keys(part).length > 0)
    found[selects ? 'ofCluster' : 'global'].push(ruleOf(placement))
  }
  return found
}

function ruleOf({ metadata, spec }: DeepReadonly<Placement>): PlacementRule {
  return {
    name: metadata.name,
    priority: spec?.priority ?? 0,
    creationTimestamp: metadata.creationTimestamp ?? '',
    ...(spec?.clusters && { clusters: spec.clusters }),
    ...(spec?.require?.labelSelector && { require: spec.require.labelSelector }),
    ...(spec?.require?.cel && { cel: spec.require.cel }),
    ...(spec?.prefer && { prefer: spec.prefer }),
    ...(spec?.tolerations && { tolerations: spec.tolerations }),
    ...(spec?.spread && { spread: spec.spread }),
    ...(spec?.replicas && { replicas: spec.replicas }),
    ...(spec?.move && { move: spec.move }),
    ...(spec?.apply && { apply: spec.apply }),
    ...(spec?.rebalance && { rebalance: spec.rebalance }),
    ...(spec?.volumes && { volumes: spec.volumes }),
    ...(spec?.failover?.tolerationSeconds !== undefined && { tolerationSeconds: spec.failover.tolerationSeconds }),
  }
}
