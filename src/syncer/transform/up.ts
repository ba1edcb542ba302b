// Upstream copies of objects that a member created, in the form the tenant's own cluster would have given them.
import {
  cloneJson,
  isJsonObject,
  type JsonValue,
  type KubeObject,
  type ObjectMeta,
  type OwnerReference,
} from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  exportedNameOf,
  isLocalAnnotation,
  managedLabel,
  memberAnnotation,
  parseAnnotation,
  reachableAnnotation,
  servingLabel,
  sourceClusterLabel,
  syncerFieldManager,
  withheldAnnotation,
} from '#crds/index.ts'
import { removeDerivedSelectors } from './label-keys.ts'
import { podTemplateUp } from './pod-template.ts'
import type { PodSpec, PodTemplate } from './pod-types.ts'
import { managedByLabel } from './slice-labels.ts'

/** Label with the hash of a pod template, on ReplicaSets and pods. */
export const templateHashLabel = 'pod-template-hash'

/**
 * Labels and annotations without those of syncers, and with annotations of a template that were withheld from the
 * member.
 */
export function metadataUp({
  labels = {},
  annotations = {},
}: DeepReadonly<ObjectMeta>): Pick<ObjectMeta, 'labels' | 'annotations'> {
  const keptLabels = Object.entries(labels).filter(
    ([label]) => label !== managedLabel && label !== servingLabel && label !== memberAnnotation,
  )
  const withheld = Object.entries(parseAnnotation({ metadata: { annotations } }, withheldAnnotation)).filter(
    (one): one is [string, string] => typeof one[1] === 'string',
  )
  const keptAnnotations = [...Object.entries(annotations), ...withheld].filter(
    ([annotation]) => !isLocalAnnotation(annotation),
  )
  return { labels: Object.fromEntries(keptLabels), annotations: Object.fromEntries(keptAnnotations) }
}

/** The owner of a copy upstream. */
export interface OwnerUp {
  readonly reference: OwnerReference
  /** Labels that differ upstream, such as the hash of a template: they name the upstream owner. */
  readonly labels: Readonly<Record<string, string>>
}

/** The metadata of a pod that a controller of a member made, derived from upstream objects. */
export interface PodRecord {
  /**
   * The labels that the tenant's template and the controller give the pod. Services select pods by these labels.
   */
  readonly labels: Readonly<Record<string, string>>
  /** The names under which clients may find it. */
  readonly hostname: string | undefined
  readonly subdomain: string | undefined
}

/** A member's pod as its tenant sees it, with the member's uid and status. */
export function podUp(
  pod: DeepReadonly<KubeObject>,
  { namespace, member, owner, record }: { namespace: string; member: string; owner: OwnerUp; record: PodRecord },
): KubeObject {
  const restored = podTemplateUp(cloneJson(pod) as KubeObject & PodTemplate)
  const { labels: own, annotations } = metadataUp(restored.metadata)
  removeDerivedSelectors(restored.spec, own)
  // The server accepts ephemeral containers only by a subresource.
  delete restored.spec['ephemeralContainers']
  const { hostname, subdomain } = record
  delete restored.spec.hostname
  delete restored.spec.subdomain
  Object.assign(restored.spec, { ...(hostname && { hostname }), ...(subdomain && { subdomain }) })
  const labels = { ...record.labels }
  relabel(labels, owner)
  const { name, uid, generateName, creationTimestamp } = pod.metadata
  const metadata: ObjectMeta = {
    ...(name && { name }),
    namespace,
    labels,
    annotations: { ...annotations, [memberAnnotation]: member },
    ownerReferences: [owner.reference],
  }
  if (uid) metadata.uid = uid
  if (generateName) metadata.generateName = generateName
  if (creationTimestamp) metadata.creationTimestamp = creationTimestamp
  const spec: PodSpec = restored.spec
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata,
    spec,
    ...(restored['status'] !== undefined && { status: restored['status'] }),
  }
}

function relabel(labels: Record<string, string> = {}, owner: OwnerUp | undefined): void {
  for (const [label, value] of Object.entries(owner?.labels ?? {}))
    if (labels[label] !== undefined) labels[label] = value
}

/** An object that a controller of a member made, other than a pod, with the uid and the status it has there. */
export function madeUp(
  object: DeepReadonly<KubeObject>,
  { namespace, member, owner }: { namespace: string; member: string; owner: OwnerUp | undefined },
): KubeObject {
  const { metadata, ...content } = cloneJson(object) as KubeObject
  const { labels, annotations } = metadataUp(metadata)
  const { name, uid, creationTimestamp } = metadata
  const up: KubeObject = {
    ...content,
    metadata: {
      ...(name && { name }),
      namespace,
      labels: { ...labels },
      annotations: { ...annotations, [memberAnnotation]: member },
      ...(uid && { uid }),
      ...(creationTimestamp && { creationTimestamp }),
      ...(owner && { ownerReferences: [owner.reference] }),
    },
  }
  return withTemplatesUp(up)
}

/**
 * Undoes the changes of the templates in an object: of a Job, or of a workload whose revision a ControllerRevision
 * holds.
 */
function withTemplatesUp(object: KubeObject): KubeObject {
  const holders = [object['spec'], (object['data'] as { spec?: unknown } | undefined)?.spec]
  for (const holder of holders)
    if (isJsonObject(holder) && isJsonObject(holder['template']) && isJsonObject(holder['template']['spec']))
      holder['template'] = podTemplateUp(holder['template'] as unknown as PodTemplate) as unknown as JsonValue
  return object
}

/** A template without pod-template-hash, which differs between members. */
export function withoutHash(template: DeepReadonly<PodTemplate>): PodTemplate {
  const out = cloneJson(template) as PodTemplate
  delete out.metadata?.labels?.[templateHashLabel]
  return out
}

interface EndpointUp {
  hostname?: string
  targetRef?: { kind?: string; namespace?: string; name?: string; uid?: string }
}

/** The upstream copy of a member's EndpointSlice. */
export function endpointSliceUp(
  slice: DeepReadonly<KubeObject>,
  {
    name,
    namespace,
    member,
    reachable,
    service,
    hostnameOf,
  }: {
    name: string
    namespace: string
    member: string
    /** The value of reachableAnnotation, as reachabilityOf gives it. */
    reachable: string | undefined
    service: OwnerReference
    /** The hostname of a pod where its endpoint has none. */
    hostnameOf?: (pod: string) => string | undefined
  },
): KubeObject {
  const copy = cloneJson(slice) as KubeObject & { endpoints?: EndpointUp[] | null }
  const { labels, annotations } = metadataUp(slice.metadata)
  const endpoints = copy.endpoints ?? []
  for (const endpoint of endpoints) {
    const { targetRef } = endpoint
    if (!targetRef) continue
    targetRef.namespace = namespace
    const hostname = endpoint.hostname ?? hostnameOf?.(targetRef.name ?? '')
    if (hostname !== undefined) endpoint.hostname = hostname
  }
  // The member copies the labels of the Service to its slices.
  const source = exportedNameOf(slice) === undefined ? {} : { [sourceClusterLabel]: member }
  return {
    apiVersion: copy.apiVersion,
    kind: copy.kind,
    metadata: {
      name,
      namespace,
      labels: { ...labels, ...source, [managedByLabel]: syncerFieldManager },
      annotations: {
        ...annotations,
        [memberAnnotation]: member,
        ...(reachable !== undefined && { [reachableAnnotation]: reachable }),
      },
      ownerReferences: [service],
    },
    addressType: copy['addressType'],
    endpoints,
    ports: copy['ports'] ?? [],
  }
}
