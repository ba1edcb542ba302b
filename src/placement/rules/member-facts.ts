// The facts that a MemberCluster itself tells of a candidate. Pure.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import { isConditionTrue, matches, type MemberCluster } from '#crds/index.ts'
import type { Candidate } from './candidate.ts'
import { classNamesOf } from './classes.ts'
import { limitsOf } from './member-limits.ts'
import { unknownField } from './unknown-field.ts'

/** `clusterLabels`: those of the LogicalCluster. Without a workload, no field is unknown. */
export function memberFacts(
  member: DeepReadonly<MemberCluster>,
  {
    clusterLabels,
    workload,
  }: {
    readonly clusterLabels: Readonly<Record<string, string>> | undefined
    readonly workload?: DeepReadonly<KubeObject>
  },
): Omit<Candidate, 'state' | 'load'> {
  const limits = limitsOf(member)
  const field = workload === undefined ? undefined : unknownField(workload, member)
  return {
    name: member.metadata.name,
    labels: member.metadata.labels ?? {},
    ready: isConditionTrue(member, 'Ready'),
    admits: matches(member.spec?.logicalClusterSelector, clusterLabels),
    taints: member.spec?.taints ?? [],
    classes: classNamesOf(member),
    isBounded: member.spec?.capacity?.limits !== undefined,
    ...(field !== undefined && { unknownField: field }),
    ...(limits && { limits }),
  }
}
