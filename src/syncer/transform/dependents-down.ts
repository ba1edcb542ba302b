// Copies for a member of objects that belong to workloads: claims, budgets, autoscalers, Ingresses, network policies.
import { cloneJson, isJsonObject, type JsonValue, type KubeObject } from '../../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import { clusterLabel, contentHash, namespaceLabelPrefix, sourceAnnotation } from '../../crds/index.ts'
import { copyMetadata, type OwnerCluster } from './down.ts'

/** An object whose spec means the same in a member. */
export function specDown(object: DeepReadonly<KubeObject>, owner: OwnerCluster): KubeObject {
  const metadata = copyMetadata(object, owner)
  const annotations = { ...metadata.annotations, [sourceAnnotation]: contentHash(object['spec']) }
  const { apiVersion, kind } = object
  return { apiVersion, kind, metadata: { ...metadata, annotations }, spec: cloneJson(object['spec'] ?? {}) }
}

/** A claim without the name of a volume: upstream it names the volume that the member has bound, or one of anybody. */
export function claimDown(object: DeepReadonly<KubeObject>, owner: OwnerCluster): KubeObject {
  const copy = specDown(object, owner)
  const { volumeName: _, ...spec } = copy['spec'] as Record<string, unknown>
  return { ...copy, spec }
}

/** A label of an upstream namespace as its namespace in a member carries it. */
export function namespaceLabel(key: string): string {
  return `${namespaceLabelPrefix}${contentHash(key)}`
}

/** A NetworkPolicy whose selectors of namespaces find those of the same logical cluster only, by their upstream labels. */
export function networkPolicyDown(object: DeepReadonly<KubeObject>, owner: OwnerCluster): KubeObject {
  const copy = specDown(object, owner)
  const { spec } = copy as { spec?: { ingress?: { from?: unknown }[]; egress?: { to?: unknown }[] } }
  const peers = [...(spec?.ingress ?? []).map(({ from }) => from), ...(spec?.egress ?? []).map(({ to }) => to)]
  for (const peer of peers.flatMap((list) => (Array.isArray(list) ? (list as unknown[]) : [])))
    if (isJsonObject(peer) && isJsonObject(peer['namespaceSelector']))
      peer['namespaceSelector'] = namespaceSelectorDown(peer['namespaceSelector'], owner.clusterId)
  return copy
}

interface Expression {
  readonly key: string
  readonly operator: string
  readonly values?: readonly string[]
}

/** A selector that finds, by their upstream labels, namespaces of the logical cluster alone. */
export function namespaceSelectorDown(selector: object, clusterId: string): JsonValue {
  const { matchLabels = {}, matchExpressions = [] } = selector as {
    matchLabels?: Readonly<Record<string, string>>
    matchExpressions?: readonly Expression[]
  }
  const labels = Object.entries(matchLabels).map(([key, value]) => [namespaceLabel(key), value] as const)
  return {
    matchLabels: { ...Object.fromEntries(labels), [clusterLabel]: clusterId },
    ...(matchExpressions.length > 0 && {
      matchExpressions: matchExpressions.map(({ key, operator, values }) => ({
        key: namespaceLabel(key),
        operator,
        ...(values && { values: [...values] }),
      })),
    }),
  }
}
