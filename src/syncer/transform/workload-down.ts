// A workload for a member: its template is changed for the member, and what the member's API server or controllers
// decide is left to them.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { cloneJson, type JsonObject, type KubeObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  canonicalJson,
  isAsAdopted,
  managedLabel,
  sourceAnnotation,
  sourceOf,
  templateChangesAnnotation,
  templateOf,
  tryLocator,
  withheldAnnotation,
  withTemplate,
  workloadKindOfObject,
  type PlacedCopy,
} from '#crds/index.ts'
import { copyMetadata, type OwnerCluster } from './down.ts'
import { embeddedIn, withhold, withholdOfClaim } from './embedded.ts'
import { removeDerivedSelectors } from './label-keys.ts'
import { podTemplateDown, sourceHash, type PodContext } from './pod-template.ts'
import type { PodSpec, PodTemplate } from './pod-types.ts'

/** The present copy in a member, and the decisions about the copy. */
export interface CopyNow {
  readonly copy: DeepReadonly<KubeObject> | undefined
  /** The copy is leaving the member. */
  readonly isLeaving: boolean
  /** An autoscaler in the member sets its replicas. */
  readonly isScaled: boolean
  /**
   * What the scheduler decided about the copy: its replicas, its first ordinal, whether its rollout is paused, and
   * whether it is asleep.
   */
  readonly decided?: Pick<PlacedCopy, 'replicas' | 'start' | 'paused' | 'asleep' | 'wait'>
}

/** Labels by which a Job finds its pods: they carry its uid, so every API server generates its own. */
export const jobLabels = ['controller-uid', 'batch.kubernetes.io/controller-uid'] as const
export const jobNameLabels = ['job-name', 'batch.kubernetes.io/job-name'] as const

/** A workload for a member. */
export function workloadDown(
  object: DeepReadonly<KubeObject>,
  owner: OwnerCluster,
  context: PodContext,
  { copy: current, isLeaving, isScaled, decided }: CopyNow,
): KubeObject {
  const metadata = copyMetadata(object, owner)
  const known = sourceOf(object['spec'], decided)
  const source = isLeaving ? `${known} leaving` : known
  const annotations = { ...metadata.annotations, [sourceAnnotation]: source }
  const { apiVersion, kind } = object
  const copy: KubeObject = { apiVersion, kind, metadata: { ...metadata, annotations }, spec: cloneJson(object['spec']) }
  const spec = copy['spec'] as Record<string, unknown> | undefined
  if (spec === undefined) return copy
  if (kind === 'Job') removeGenerated(spec)
  if (kind === 'CronJob' && isLeaving) spec['suspend'] = true
  if (kind === 'Pod') removeDerivedSelectors(spec, object.metadata.labels)
  if (isLeaving || decided?.paused) pauseRollout(kind, spec)
  // Pods that go to another member one by one look to the member's controller as if the StatefulSet had shrunk.
  const isMoving = isLeaving || decided?.wait?.gate === 'VolumesCopied' || decided?.start !== undefined
  if (kind === 'StatefulSet' && isMoving) keepClaims(spec)
  const replicas = (current?.['spec'] as { replicas?: number } | undefined)?.replicas
  // As in any cluster, the replicas in a spec that the tenant has changed apply until the autoscaler acts again.
  const isUnchanged = current?.metadata.annotations?.[sourceAnnotation] === source
  if (isScaled && isUnchanged && replicas !== undefined) spec['replicas'] = replicas
  if (decided?.replicas !== undefined) spec['replicas'] = decided.replicas
  if (decided?.start !== undefined) limitOrdinals(object, spec, { ...decided, start: decided.start })
  if (decided?.asleep) endPods(kind, spec, current)
  const isAsleep = decided?.asleep && kind === 'DaemonSet'
  // The template of an adopted workload stays as it is, because any change would restart its pods. A sleeping DaemonSet
  // is the exception: all its pods must end anyway.
  if (isAsAdopted(object, owner.adoptedFrom?.member) && !isAsleep) return copy
  filterTemplates(copy, context)
  keepClaimTemplates(copy, current)
  const template = templateOf(copy) as PodTemplate | undefined
  if (template === undefined) return copy
  const hostnameIsShort = !fitsHostname(copy, template.spec)
  const wanted = podTemplateDown(template, {
    ...context,
    ...(hostnameIsShort && { hostnameIsShort }),
    ...(isAsleep && { isAsleep }),
  })
  keepChangesText(wanted, current)
  return withTemplate(copy, keptTemplate(wanted, kind, current) ?? wanted)
}

/**
 * Ends the pods of a sleeping workload, which stays in its member, and prevents new ones. Keeps the claims of a
 * StatefulSet, even if its retention policy deletes them when it scales down. A Job that has begun runs to its end, and
 * a bare pod keeps running, because both would lose their work. A DaemonSet is not handled here: podTemplateDown gives
 * it a template that selects no node.
 */
function endPods(kind: string, spec: Record<string, unknown>, current: DeepReadonly<KubeObject> | undefined): void {
  if (kind === 'CronJob') spec['suspend'] = true
  if (kind === 'Job' && (current?.['status'] as { startTime?: string } | undefined)?.startTime === undefined)
    spec['suspend'] = true
  if (kind === 'StatefulSet') keepClaims(spec)
  if (workloadKindOfObject({ kind })?.paths.replicas !== undefined) spec['replicas'] = 0
}

/** Keeps the claims of a StatefulSet whose pods end and come back, here or in another member. */
function keepClaims(spec: Record<string, unknown>): void {
  if (spec['persistentVolumeClaimRetentionPolicy'] === undefined) return
  spec['persistentVolumeClaimRetentionPolicy'] = { whenDeleted: 'Retain', whenScaled: 'Retain' }
}

/**
 * Keeps the text of the recorded changes in the copy if it has the same content in another order of keys: another text
 * would cause a rollout.
 */
function keepChangesText({ metadata }: PodTemplate, current: DeepReadonly<KubeObject> | undefined): void {
  const template = current && (templateOf(current) as PodTemplate | undefined)
  const known = template?.metadata?.annotations?.[templateChangesAnnotation]
  const annotations = metadata?.annotations
  const wanted = annotations?.[templateChangesAnnotation]
  if (known === undefined || annotations === undefined || wanted === undefined || known === wanted) return
  if (canonicalJson(parseJsonText(known)) === wanted) annotations[templateChangesAnnotation] = known
}

/**
 * Whether the full domain name of each pod is short enough to be its hostname (setHostnameAsFQDN): the kubelet starts
 * no pod whose hostname exceeds 64 characters.
 */
function fitsHostname({ kind, metadata, spec }: KubeObject, { hostname, subdomain }: PodSpec): boolean {
  const { serviceName } = (spec ?? {}) as { serviceName?: string }
  const domain = subdomain ?? (kind === 'StatefulSet' ? serviceName : undefined)
  if (!domain) return true
  const { name = '', namespace = '' } = metadata
  // The longest name that a controller makes: it adds a hash and five letters, or a number.
  const longest = hostname?.length ?? Math.min(63, name.length + (kind === 'Pod' ? 0 : 17))
  return longest + 1 + `${domain}.${namespace}.svc.cluster.local`.length <= 64
}

/**
 * The template of an existing Job or pod: what cannot be changed stays as it is in the member, also where the member or
 * our own settings would give another value today. Undefined for kinds whose template can be changed.
 */
function keptTemplate(
  wanted: PodTemplate,
  kind: string,
  current: DeepReadonly<KubeObject> | undefined,
): PodTemplate | undefined {
  if (current === undefined || !(workloadKindOfObject({ kind })?.fixedTemplate ?? false)) return undefined
  const isPod = kind === 'Pod'
  const template = (isPod ? current : templateOf(current)) as PodTemplate | undefined
  if (template === undefined) return undefined
  const { labels = {}, annotations = {} } = template.metadata ?? {}
  const changes = annotations[templateChangesAnnotation]
  const isSame = sourceHash(template) === sourceHash(wanted)
  const metadata = {
    ...wanted.metadata,
    labels: { ...(isPod ? {} : labels), ...wanted.metadata?.labels },
    annotations: {
      ...wanted.metadata?.annotations,
      ...((isPod || isSame) && changes && { [templateChangesAnnotation]: changes }),
    },
  }
  const live: PodSpec = cloneJson(template.spec)
  if (isPod) return { metadata, spec: changedPod(live, wanted.spec) }
  return { metadata, spec: isSame ? live : wanted.spec }
}

/** The running pod with those fields of the wanted one that can be changed while it runs. */
function changedPod(live: PodSpec, wanted: PodSpec): PodSpec {
  const images = new Map(
    [...wanted.containers, ...(wanted.initContainers ?? [])].map(({ name, image }) => [name, image]),
  )
  for (const container of [...live.containers, ...(live.initContainers ?? [])])
    if (images.has(container.name)) container['image'] = images.get(container.name)
  for (const field of ['activeDeadlineSeconds', 'terminationGracePeriodSeconds'])
    if (wanted[field] !== undefined) live[field] = wanted[field]
  if (gatesOf(live).length > 0) takeDirectives(live, wanted)
  const tolerations = [live, wanted].flatMap(({ tolerations: list }) =>
    Array.isArray(list) ? (list as unknown[]) : [],
  )
  const distinct = new Map(tolerations.map((one) => [canonicalJson(one), one]))
  if (distinct.size > 0) live['tolerations'] = [...distinct.values()]
  return live
}

const gatesOf = (spec: PodSpec): readonly { name?: string }[] =>
  Array.isArray(spec['schedulingGates']) ? (spec['schedulingGates'] as { name?: string }[]) : []

/**
 * Takes over scheduling gates, the node selector and node affinity: the selector and the affinity may become stricter
 * until the pod's last gate is removed.
 */
function takeDirectives(live: PodSpec, wanted: PodSpec): void {
  const kept = new Set(gatesOf(wanted).map(({ name }) => name))
  const gates = gatesOf(live).filter(({ name }) => kept.has(name))
  if (gates.length > 0) live['schedulingGates'] = gates
  else delete live['schedulingGates']
  if (wanted['nodeSelector'] !== undefined)
    live['nodeSelector'] = { ...(live['nodeSelector'] as object | undefined), ...(wanted['nodeSelector'] as object) }
  const { nodeAffinity } = (wanted['affinity'] ?? {}) as { nodeAffinity?: unknown }
  if (nodeAffinity !== undefined) live['affinity'] = { ...(live['affinity'] as object | undefined), nodeAffinity }
}

/** Removes fields that the member's API server generates again, and the time to live, which stays upstream only. */
function removeGenerated(spec: Record<string, unknown>): void {
  delete spec['ttlSecondsAfterFinished']
  if (spec['manualSelector'] === true) return
  delete spec['selector']
  const { metadata } = (spec['template'] ?? {}) as PodTemplate
  for (const label of [...jobLabels, ...jobNameLabels]) Reflect.deleteProperty(metadata?.labels ?? {}, label)
}

/** Pauses the rollout of a copy that leaves or that another copy is about to replace, so that it makes no new pods. */
function pauseRollout(kind: string, spec: Record<string, unknown>): void {
  if (kind === 'Deployment') spec['paused'] = true
  if (kind === 'DaemonSet') spec['updateStrategy'] = { type: 'OnDelete' }
}

/**
 * Limits a StatefulSet to the ordinals that the member has. The partition of a rolling update is converted, because it
 * counts from the first ordinal, which may be a different one in the member.
 */
function limitOrdinals(
  object: DeepReadonly<KubeObject>,
  spec: Record<string, unknown>,
  { start, replicas = 0, paused }: Pick<PlacedCopy, 'replicas' | 'paused'> & { readonly start: number },
): void {
  const { ordinals } = (object['spec'] ?? {}) as { ordinals?: { start?: number } }
  const first = ordinals?.start ?? 0
  spec['ordinals'] = { start }
  const strategy = (spec['updateStrategy'] ?? {}) as { type?: string; rollingUpdate?: { partition?: number } }
  if (paused) spec['updateStrategy'] = { type: 'OnDelete' }
  else if (strategy.rollingUpdate?.partition !== undefined) {
    const partition = Math.min(Math.max(0, strategy.rollingUpdate.partition + first - start), replicas)
    spec['updateStrategy'] = { ...strategy, rollingUpdate: { ...strategy.rollingUpdate, partition } }
  }
}

/**
 * Gives the embedded templates our label, and filters each as an object of its kind. The pod template of the workload
 * is not among them: it is changed separately.
 */
function filterTemplates(copy: KubeObject, context: PodContext): void {
  if (copy.kind === 'Pod') return
  const main = templateOf(copy)
  for (const { kind, object: template } of embeddedIn(copy['spec'])) {
    if (template === main) continue
    if (kind === 'Pod') {
      Object.assign(template, podTemplateDown(template as unknown as PodTemplate, context))
      continue
    }
    const annotations = withhold({ kind, object: template }, context.annotationPrefixes)?.annotations
    const { metadata } = template as { metadata?: ObjectMeta }
    template['metadata'] = {
      ...metadata,
      labels: { ...metadata?.labels, [managedLabel]: 'true' },
      ...(annotations && {
        annotations: { ...metadata?.annotations, [withheldAnnotation]: canonicalJson(annotations) },
      }),
    } as unknown as JsonObject
    if (kind === 'PersistentVolumeClaim') delete template['status']
  }
}

/**
 * Keeps the claim templates of the present copy: the member's API server refuses every write that changes them. They
 * may differ from what would be sent today, because an earlier release, or other prefixes of annotations, may have let
 * other fields pass.
 */
function keepClaimTemplates(copy: KubeObject, current: DeepReadonly<KubeObject> | undefined): void {
  if (current === undefined || copy.kind !== 'StatefulSet') return
  if (tryLocator(current as KubeObject)?.uid !== tryLocator(copy)?.uid) return
  const known = claimTemplates(current)
  for (const [index, template] of claimTemplates(copy).entries()) {
    const live = known[index]
    if (live?.metadata?.name !== template.metadata?.name) continue
    const set = Object.entries(live?.metadata ?? {}).filter(([, value]) => value !== null)
    template.metadata = structuredClone(Object.fromEntries(set))
    const spec: JsonObject = structuredClone(live?.spec ?? {})
    Object.assign((template.spec ??= {}), withholdOfClaim(spec))
  }
}

function claimTemplates(workload: DeepReadonly<KubeObject>): { metadata?: ObjectMeta; spec?: JsonObject }[] {
  const { volumeClaimTemplates } = (workload['spec'] ?? {}) as { volumeClaimTemplates?: unknown }
  return Array.isArray(volumeClaimTemplates)
    ? (volumeClaimTemplates as { metadata?: ObjectMeta; spec?: JsonObject }[])
    : []
}
