// Whether a pod may run on a node: its selectors and affinity, and the taints of the node.
import type { Node, NodeSelectorTerm, PodSpec, Toleration } from '#simulation/cluster/objects.ts'

type Taint = NonNullable<NonNullable<Node['spec']>['taints']>[number]

/** Whether nodeSelector and required node affinity of the pod match the node. */
export function matchesNode({ nodeSelector = {}, affinity }: PodSpec, node: Node): boolean {
  const labels = node.metadata.labels ?? {}
  if (Object.entries(nodeSelector).some(([key, value]) => labels[key] !== value)) return false
  const terms = affinity?.nodeAffinity?.requiredDuringSchedulingIgnoredDuringExecution?.nodeSelectorTerms
  return terms === undefined || terms.some((term) => matchesTerm(term, node))
}

function matchesTerm({ matchExpressions = [], matchFields = [] }: NodeSelectorTerm, node: Node): boolean {
  if (matchExpressions.length + matchFields.length === 0) return false
  const labels = node.metadata.labels ?? {}
  const fields = { 'metadata.name': node.metadata.name }
  return (
    matchExpressions.every((one) => matchesExpression(one, labels[one.key])) &&
    matchFields.every((one) => matchesExpression(one, fields['metadata.name']))
  )
}

function matchesExpression(
  { operator, values = [] }: NonNullable<NodeSelectorTerm['matchExpressions']>[number],
  value: string | undefined,
): boolean {
  switch (operator) {
    case 'In':
      return value !== undefined && values.includes(value)
    case 'NotIn':
      return value === undefined || !values.includes(value)
    case 'Exists':
      return value !== undefined
    case 'DoesNotExist':
      return value === undefined
    case 'Gt':
      return Number(value) > Number(values[0])
    case 'Lt':
      return Number(value) < Number(values[0])
    default:
      return false
  }
}

/** Whether the tolerations cover all taints of the node that keep pods away. */
export function toleratesNode(tolerations: readonly Toleration[] | undefined, node: Node): boolean {
  return untoleratedTaint(tolerations, node) === undefined
}

/** The first taint that keeps the pod away. */
export function untoleratedTaint(tolerations: readonly Toleration[] = [], { spec }: Node): Taint | undefined {
  return (spec?.taints ?? [])
    .filter(({ effect }) => effect !== 'PreferNoSchedule')
    .find((taint) => !tolerations.some((toleration) => tolerates(toleration, taint)))
}

function tolerates({ key = '', operator = 'Equal', value = '', effect = '' }: Toleration, taint: Taint): boolean {
  if (effect !== '' && effect !== taint.effect) return false
  if (key !== '' && key !== taint.key) return false
  return operator === 'Exists' || (key !== '' && value === (taint.value ?? ''))
}
