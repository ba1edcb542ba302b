// Objects that a member made, on their way up: as if the tenant's own cluster had made them.
import { cloneJson, type KubeObject, type ObjectMeta, type OwnerReference } from '../../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../../client/index.ts'
import { managedLabel, memberAnnotation, reachableAnnotation, servingLabel } from '../../crds/index.ts'
import { staysUpstream } from './down.ts'
import { podTemplateUp } from './pod-template.ts'
import type { PodSpec, PodTemplate } from './pod-types.ts'

export const templateHashLabel = 'pod-template-hash'

/** Labels and annotations without ours. */
export function metadataUp({
  labels = {},
  annotations = {},
}: DeepReadonly<ObjectMeta>): Pick<ObjectMeta, 'labels' | 'annotations'> {
  const keptLabels = Object.entries(labels).filter(
    ([label]) => label !== managedLabel && label !== servingLabel && label !== memberAnnotation,
  )
  const keptAnnotations = Object.entries(annotations).filter(([annotation]) => !staysUpstream(annotation))
  return { labels: Object.fromEntries(keptLabels), annotations: Object.fromEntries(keptAnnotations) }
}

export interface PodOwner {
  readonly reference: OwnerReference
  /** pod-template-hash of the upstream ReplicaSet. */
  readonly templateHash: string | undefined
}

/** A member's pod as its tenant sees it, with the member's uid and status. */
export function podUp(
  pod: DeepReadonly<KubeObject>,
  { namespace, member, owner }: { namespace: string; member: string; owner: PodOwner | undefined },
): KubeObject {
  const restored = podTemplateUp(cloneJson(pod) as KubeObject & PodTemplate)
  const { labels, annotations } = metadataUp(restored.metadata)
  if (owner?.templateHash !== undefined && labels?.[templateHashLabel] !== undefined)
    labels[templateHashLabel] = owner.templateHash
  const { name, uid, generateName, creationTimestamp } = pod.metadata
  const metadata: ObjectMeta = {
    ...(name && { name }),
    namespace,
    labels: { ...labels },
    annotations: { ...annotations, [memberAnnotation]: member },
  }
  if (uid) metadata.uid = uid
  if (generateName) metadata.generateName = generateName
  if (creationTimestamp) metadata.creationTimestamp = creationTimestamp
  if (owner) metadata.ownerReferences = [owner.reference]
  const spec: PodSpec = restored.spec
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec,
    ...(restored['status'] !== undefined && { status: restored['status'] }),
  }
}

/** The template of a member's ReplicaSet as the tenant wrote it, without the hash that names one ReplicaSet. */
export function replicaSetTemplateUp(replicaSet: DeepReadonly<KubeObject>): PodTemplate {
  const spec = cloneJson(replicaSet['spec']) as { template: PodTemplate }
  return withoutHash(podTemplateUp(spec.template))
}

/** A template without pod-template-hash: what two ReplicaSets of one revision have in common. */
export function withoutHash(template: DeepReadonly<PodTemplate>): PodTemplate {
  const out = cloneJson(template) as PodTemplate
  delete out.metadata?.labels?.[templateHashLabel]
  return out
}

interface EndpointUp {
  targetRef?: { kind?: string; namespace?: string; name?: string; uid?: string }
}

/** A member's EndpointSlice, upstream. */
export function endpointSliceUp(
  slice: DeepReadonly<KubeObject>,
  {
    name,
    namespace,
    member,
    reachable,
    service,
  }: { name: string; namespace: string; member: string; reachable: boolean; service: OwnerReference },
): KubeObject {
  const copy = cloneJson(slice) as KubeObject & { endpoints?: EndpointUp[] | null }
  const { labels, annotations } = metadataUp(slice.metadata)
  const endpoints = copy.endpoints ?? []
  for (const { targetRef } of endpoints) if (targetRef) targetRef.namespace = namespace
  return {
    apiVersion: copy.apiVersion,
    kind: copy.kind,
    metadata: {
      name,
      namespace,
      labels: { ...labels, 'endpointslice.kubernetes.io/managed-by': 'kcp-syncer' },
      annotations: { ...annotations, [memberAnnotation]: member, ...(reachable && { [reachableAnnotation]: 'true' }) },
      ownerReferences: [service],
    },
    addressType: copy['addressType'],
    endpoints,
    ports: copy['ports'] ?? [],
  }
}
