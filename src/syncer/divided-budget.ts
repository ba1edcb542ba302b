// PodDisruptionBudgets of workloads that several members run together.
import { cloneJson, type KubeObject } from '../apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '../apimachinery/selector/index.ts'
import { budgetShare, type Budget } from '../placement/index.ts'
import type { NamespaceView } from './namespace-view.ts'

/** The copy of a budget with the part that this member has of it; the same copy if it selects no divided workload. */
export function withBudgetShare(copy: KubeObject, { divided }: NamespaceView, member: string): KubeObject {
  if (divided.size === 0) return copy
  const spec = (copy['spec'] ?? {}) as Budget & { selector?: LabelSelectorSource }
  const selector = selectorFromObject(spec.selector)
  const shares = new Map<string, number>()
  for (const { podLabels, replicas } of divided.values()) {
    if (!selector.matches(podLabels)) continue
    for (const [name, count] of Object.entries(replicas)) shares.set(name, (shares.get(name) ?? 0) + count)
  }
  if (shares.size === 0) return copy
  const { minAvailable: _, maxUnavailable: __, ...rest } = spec
  const part = budgetShare(spec, { member, shares: Object.fromEntries(shares) })
  return { ...cloneJson(copy), spec: { ...cloneJson(rest), ...part } }
}
