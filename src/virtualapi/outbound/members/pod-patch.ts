// The strategic merge patch by which a change of an upstream pod is made in its member.
import { isDeepStrictEqual } from 'node:util'
import { cloneJson, type KubeObject, type ObjectMeta } from '#apimachinery/meta/index.ts'
import { replacingPatch } from '#apimachinery/patch/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { isAnnotationForMembers, isLocalAnnotation, isOwnLabel, placedOnAnnotation } from '#crds/index.ts'

const pods = { group: '', resource: 'pods' } as const
/** Labels whose values differ between upstream and the member, because they name the owner of the pod. */
const ownerLabels: ReadonlySet<string> = new Set([
  'pod-template-hash',
  'controller-uid',
  'batch.kubernetes.io/controller-uid',
])
const accessVariables: ReadonlySet<string> = new Set(['KUBERNETES_SERVICE_HOST', 'KUBERNETES_SERVICE_PORT'])
const namespaceField = 'metadata.namespace'

interface PodChange {
  /** Empty for the pod itself; `status`, `ephemeralcontainers` or `resize`. */
  readonly subresource: string
  /** The upstream pod before and after the change. */
  readonly old: KubeObject
  readonly next: KubeObject
  /** The pod in the member. */
  readonly live: KubeObject
  /** Prefixes of annotations that the member allows besides the default ones. */
  readonly annotationPrefixes: readonly string[]
}

interface Variable {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: { readonly fieldRef?: { readonly fieldPath?: string } }
}
interface Container {
  readonly name: string
  readonly image?: string
  readonly resources?: unknown
  readonly env?: readonly Variable[]
}
interface Condition {
  readonly type: string
}
interface Pod extends KubeObject {
  readonly spec: Readonly<Record<string, unknown>> & {
    readonly containers: readonly Container[]
    readonly initContainers?: readonly Container[]
    readonly ephemeralContainers?: readonly Container[]
    readonly schedulingGates?: readonly { readonly name: string }[]
  }
  readonly status?: Readonly<Record<string, unknown>> & { readonly conditions?: readonly Condition[] }
}
type Patch = Readonly<Record<string, unknown>>

/**
 * The patch, without a uid; undefined if the member has nothing to change. The patch leaves out the fields that only
 * the syncer or the kubelet may write in the member: our labels, annotations that are not for members, owners,
 * finalizers, and addresses and phases in the status. Throws Forbidden for a label that ties the pod to its owner in
 * the member.
 */
export function podPatch(change: PodChange): Patch | undefined {
  const [old, next, live] = [change.old as Pod, change.next as Pod, change.live as Pod]
  const patch = defined({
    metadata: metadataPatch(change),
    spec: specPatch(change.subresource, old, next, live),
    status: change.subresource === 'status' ? statusPatch(old, next) : undefined,
  })
  return Object.keys(patch).length === 0 ? undefined : patch
}

function metadataPatch({ old, next, annotationPrefixes }: PodChange): Patch | undefined {
  const labels = entriesPatch(old.metadata.labels, next.metadata.labels, (name) => !isOwnLabel(name))
  const tie = Object.keys(labels ?? {}).find((name) => ownerLabels.has(name))
  if (tie !== undefined && !isOfTenant(old.metadata))
    throw forbidden(pods, old.metadata.name ?? '', `its label "${tie}" ties it to its owner in the member cluster`)
  const isForMember = (name: string): boolean =>
    isAnnotationForMembers(name, annotationPrefixes) && !isLocalAnnotation(name)
  const annotations = entriesPatch(old.metadata.annotations, next.metadata.annotations, isForMember)
  return someOf({ labels, annotations })
}

/** True for a pod that its tenant created: the syncer copies it with all its labels. */
function isOfTenant({ annotations }: ObjectMeta): boolean {
  return annotations?.[placedOnAnnotation] !== undefined
}

function entriesPatch(
  old: Readonly<Record<string, string>> = {},
  next: Readonly<Record<string, string>> = {},
  isForMember: (name: string) => boolean,
): Readonly<Record<string, string | null>> | undefined {
  const changed = [...new Set([...Object.keys(old), ...Object.keys(next)])].filter(
    (name) => old[name] !== next[name] && isForMember(name),
  )
  return changed.length === 0 ? undefined : Object.fromEntries(changed.map((name) => [name, next[name] ?? null]))
}

function specPatch(subresource: string, old: Pod, next: Pod, live: Pod): Patch | undefined {
  switch (subresource) {
    case '':
      return someOf({
        ...containersPatch(old, next, 'image'),
        ...Object.fromEntries(
          ['activeDeadlineSeconds', 'terminationGracePeriodSeconds', 'tolerations'].map((field) => [
            field,
            valuePatch(old.spec[field], next.spec[field]),
          ]),
        ),
        schedulingGates: removedGates(old, next),
        ...(isGated(live) && directivesPatch(next, live)),
      })
    case 'resize':
      return someOf(containersPatch(old, next, 'resources'))
    case 'ephemeralcontainers':
      return someOf({ ephemeralContainers: addedContainers(old, next, live) })
    default:
      return undefined
  }
}

function isGated({ spec }: Pod): boolean {
  return (spec.schedulingGates ?? []).length > 0
}

/**
 * The patch of nodeSelector and node affinity, which may be added until the last gate is removed. They are compared
 * with the pod in the member, so that the write that removes the gate also makes earlier additions that did not reach
 * the member.
 */
function directivesPatch(next: Pod, live: Pod): Patch {
  const [wanted, known] = [directivesOf(next), directivesOf(live)]
  const isSelected = Object.entries(wanted.nodeSelector).every(([label, value]) => known.nodeSelector[label] === value)
  const isSameAffinity = isDeepStrictEqual(wanted.nodeAffinity, known.nodeAffinity)
  return {
    ...(!isSelected && { nodeSelector: wanted.nodeSelector }),
    ...(!isSameAffinity && { affinity: { nodeAffinity: replacingPatch(known.nodeAffinity, wanted.nodeAffinity) } }),
  }
}

function directivesOf({ spec }: Pod): { readonly nodeSelector: Patch; readonly nodeAffinity: Patch } {
  const { nodeSelector = {}, affinity } = spec as { nodeSelector?: Patch; affinity?: { nodeAffinity?: Patch } }
  return { nodeSelector, nodeAffinity: affinity?.nodeAffinity ?? {} }
}

function containersPatch(old: Pod, next: Pod, field: 'image' | 'resources'): Patch {
  return Object.fromEntries(
    (['containers', 'initContainers'] as const).map((list) => [
      list,
      someItems(
        (next.spec[list] ?? [])
          .filter((container, index) => !isDeepStrictEqual(container[field], old.spec[list]?.[index]?.[field]))
          .map((container) => ({ name: container.name, [field]: container[field] })),
      ),
    ]),
  )
}

function removedGates(old: Pod, next: Pod): readonly Patch[] | undefined {
  const kept = new Set((next.spec.schedulingGates ?? []).map(({ name }) => name))
  return someItems(
    (old.spec.schedulingGates ?? [])
      .filter(({ name }) => !kept.has(name))
      .map(({ name }) => ({ name, $patch: 'delete' })),
  )
}

function addedContainers(old: Pod, next: Pod, live: Pod): readonly Container[] | undefined {
  const known = new Set((old.spec.ephemeralContainers ?? []).map(({ name }) => name))
  const access = live.spec.containers
    .map(({ env = [] }) => env.filter(({ name }) => accessVariables.has(name)))
    .find((variables) => variables.length > 0)
  return someItems(
    (next.spec.ephemeralContainers ?? [])
      .filter(({ name }) => !known.has(name))
      .map((container) => inLogicalCluster(container, access ?? [], next.metadata.namespace ?? '')),
  )
}

/**
 * The container changed as the syncer changes other containers: its API server and its namespace are those of the
 * logical cluster.
 */
function inLogicalCluster(container: Container, access: readonly Variable[], namespace: string): Container {
  const { env = [] } = container
  const own = env.map((variable) =>
    variable.valueFrom?.fieldRef?.fieldPath === namespaceField ? { name: variable.name, value: namespace } : variable,
  )
  const missing = access.filter(({ name }) => !env.some((variable) => variable.name === name))
  return { ...cloneJson(container), env: [...missing, ...own] }
}

/**
 * The patch of conditions, message and reason. Addresses are left out, because Services of the member would route to
 * them. The kubelet owns the rest.
 */
function statusPatch({ status: old }: Pod, { status: next }: Pod): Patch | undefined {
  const [before, after] = [old?.conditions ?? [], next?.conditions ?? []]
  const typesOf = (conditions: readonly Condition[]): Map<string, Condition> =>
    new Map(conditions.map((condition) => [condition.type, condition]))
  const [was, is] = [typesOf(before), typesOf(after)]
  return someOf({
    conditions: someItems([
      ...after.filter((condition) => !isDeepStrictEqual(condition, was.get(condition.type))),
      ...before.filter(({ type }) => !is.has(type)).map(({ type }) => ({ type, $patch: 'delete' })),
    ]),
    message: valuePatch(old?.['message'], next?.['message']),
    reason: valuePatch(old?.['reason'], next?.['reason']),
  })
}

function valuePatch(old: unknown, next: unknown): unknown {
  return isDeepStrictEqual(old, next) ? undefined : (next ?? null)
}

function someItems<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length === 0 ? undefined : items
}

function someOf(patch: Patch): Patch | undefined {
  const kept = defined(patch)
  return Object.keys(kept).length === 0 ? undefined : kept
}

function defined(patch: Patch): Patch {
  return Object.fromEntries(Object.entries(patch).filter(([, value]) => value !== undefined))
}
