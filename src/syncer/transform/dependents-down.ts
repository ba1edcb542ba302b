// Copies for a member of objects that belong to workloads: claims, budgets, autoscalers, Ingresses, network policies.
import { isDeepStrictEqual } from 'node:util'
import { cloneJson, isJsonObject, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { selectorFromObject, type LabelSelectorSource } from '#apimachinery/selector/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  clusterLabel,
  contentHash,
  memberParts,
  movedVolumeAnnotation,
  namespaceLabelPrefix,
  sourceAnnotation,
  systemNamespace,
} from '#crds/index.ts'
import { copyMetadata, type OwnerCluster } from './down.ts'
import { withholdOfClaim } from './embedded.ts'

/** The API server gives each namespace this label with its name. */
const namespaceNameLabel = 'kubernetes.io/metadata.name'

/** An object whose spec means the same in a member. */
export function specDown(object: DeepReadonly<KubeObject>, owner: OwnerCluster): KubeObject {
  const metadata = copyMetadata(object, owner)
  const annotations = { ...metadata.annotations, [sourceAnnotation]: contentHash(object['spec']) }
  const { apiVersion, kind } = object
  return { apiVersion, kind, metadata: { ...metadata, annotations }, spec: cloneJson(object['spec'] ?? {}) }
}

/**
 * A claim without the name of a volume: upstream this is the volume that the member bound, or any name. Only the volume
 * that a move has made in the member is named.
 */
export function claimDown(object: DeepReadonly<KubeObject>, owner: OwnerCluster): KubeObject {
  const copy = specDown(object, owner)
  const spec = copy['spec'] as JsonObject
  withholdOfClaim(spec)
  const moved = object.metadata.annotations?.[movedVolumeAnnotation]
  if (moved !== undefined) spec['volumeName'] = moved
  return copy
}

/** A label of an upstream namespace as its namespace in a member carries it. */
export function namespaceLabel(key: string): string {
  return `${namespaceLabelPrefix}${contentHash(key)}`
}

interface Peer {
  readonly namespaceSelector?: LabelSelectorSource
  readonly podSelector?: LabelSelectorSource
  readonly ipBlock?: unknown
}

/**
 * A NetworkPolicy whose namespace selectors match, by upstream labels, only namespaces of the same logical cluster.
 * Egress to the DNS of a cluster goes to the nameserver of the member, too.
 */
export function networkPolicyDown(object: DeepReadonly<KubeObject>, owner: OwnerCluster): KubeObject {
  const copy = specDown(object, owner)
  const { spec } = copy as { spec?: { ingress?: { from?: unknown }[]; egress?: { to?: unknown }[] } }
  for (const rule of spec?.egress ?? [])
    if (Array.isArray(rule.to) && peersIn(rule.to).some((peer) => admitsDns(peer, object.metadata.namespace)))
      rule.to = [...(rule.to as unknown[]), structuredClone(nameserverPeer)]
  const peers = [...(spec?.ingress ?? []).map(({ from }) => from), ...(spec?.egress ?? []).map(({ to }) => to)]
  for (const peer of peers.flatMap((list) => (Array.isArray(list) ? peersIn(list) : [])))
    if (peer.namespaceSelector !== undefined && !isDeepStrictEqual(peer, nameserverPeer))
      Object.assign(peer, {
        namespaceSelector: namespaceSelectorDown(peer.namespaceSelector as object, owner.clusterId),
      })
  return copy
}

const peersIn = (list: readonly unknown[]): Peer[] => list.filter(isJsonObject)

/** The labels of the namespace and the pods of the DNS of most clusters. */
const dnsNamespace = { [namespaceNameLabel]: 'kube-system' }
const dnsPods = { 'k8s-app': 'kube-dns' }

const nameserverPeer = {
  namespaceSelector: { matchLabels: { [namespaceNameLabel]: systemNamespace } },
  podSelector: { matchLabels: { 'app.kubernetes.io/name': memberParts.nameserver } },
}

function admitsDns({ namespaceSelector, podSelector, ipBlock }: Peer, namespace: string | undefined): boolean {
  if (ipBlock !== undefined) return false
  const isNamespace =
    namespaceSelector === undefined
      ? namespace === 'kube-system'
      : selectorFromObject(namespaceSelector).matches(dnsNamespace)
  return isNamespace && (podSelector === undefined || selectorFromObject(podSelector).matches(dnsPods))
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
