// What one namespace of a logical cluster has in one member: its workloads there, and what they refer to.
import type { KubeObject } from '../apimachinery/meta/index.ts'
import type { DeepReadonly } from '../client/index.ts'
import {
  hasCopy,
  isPlaceable,
  memberAnnotation,
  placedOn,
  syncerFinalizer,
  templateOf,
  volumeAnnotation,
  type CopyState,
  type PlacedOn,
} from '../crds/index.ts'
import { ingressReferences, referencesOf } from './references.ts'
import type { PodSpec } from './transform/pod-types.ts'

type CachedObject = DeepReadonly<KubeObject>

/** A workload that several members run together. */
export interface DividedWorkload {
  readonly podLabels: Readonly<Record<string, string>>
  /** By member: its part of the replicas. */
  readonly replicas: Readonly<Record<string, number>>
}

export interface NamespaceView {
  /** A workload of this namespace is in the member, or should be. */
  readonly present: boolean
  /** Every workload that is in the member leaves it: new clients should not be told its addresses. */
  readonly leaving: boolean
  /** The namespace must exist in the member: something of it runs there, or has its data there. */
  readonly needed: boolean
  /** Services of this namespace should be in the member. */
  readonly servicesWanted: boolean
  /** `configmaps/NAME` and so on: what workloads in the member refer to, including those that are being removed. */
  readonly references: ReadonlySet<string>
  /** `KIND/NAME` of the workloads of which the member alone runs all replicas, or should. */
  readonly workloads: ReadonlySet<string>
  /** By `KIND/NAME`: the workloads that this member runs together with others. */
  readonly divided: ReadonlyMap<string, DividedWorkload>
  placedHere(workload: CachedObject): boolean
}

/** The objects of a namespace that decide what of it a member gets. */
export interface NamespaceContent {
  readonly workloads: Iterable<CachedObject>
  readonly claims: Iterable<CachedObject>
  readonly ingresses: Iterable<CachedObject>
}

/**
 * The view of a namespace, from its content. `clusterPresent`: the logical cluster has pods in the member that reach pods of
 * other members, so they may use Services of every namespace.
 */
export function viewNamespace(
  { workloads, claims, ingresses }: NamespaceContent,
  { member, clusterPresent }: { member: string; clusterPresent: boolean },
): NamespaceView {
  const references = new Set<string>()
  const whole = new Set<string>()
  const divided = new Map<string, DividedWorkload>()
  let present = false
  let leaving = true
  for (const workload of workloads) {
    if (!isInMember(workload, member)) continue
    present = true
    const state = placedOn(workload as KubeObject)[member]?.state
    if (state === undefined || !leavingStates.includes(state)) leaving = false
    // Nothing of it is left, so it refers to nothing; clients of the Ingresses and Services come all the same.
    if (state === 'Forwarding') continue
    const [key, copies] = [`${workload.kind}/${workload.metadata.name ?? ''}`, placedOn(workload as KubeObject)]
    const template = templateOf(workload) as PodTemplate | undefined
    if (copies[member]?.replicas === undefined) whole.add(key)
    // A StatefulSet that moves ordinal by ordinal is not divided.
    else if (copies[member].start === undefined)
      divided.set(key, { podLabels: template?.metadata?.labels ?? {}, replicas: sharesIn(copies) })
    const spec = template?.spec
    if (spec === undefined) continue
    for (const { resource, name } of referencesOf(spec)) references.add(`${resource}/${name}`)
  }
  if (present)
    for (const ingress of ingresses)
      for (const { resource, name } of ingressReferences(ingress)) references.add(`${resource}/${name}`)
  let needed = present
  for (const claim of claims) needed ||= isClaimIn(claim, member)
  return {
    present,
    leaving: present && leaving,
    needed,
    servicesWanted: present || clusterPresent,
    references,
    workloads: whole,
    divided,
    placedHere: (workload) => hasCopy(placedOn(workload as KubeObject)[member]),
  }
}

const leavingStates: readonly CopyState[] = ['Draining', 'Terminating', 'Forwarding']

interface PodTemplate {
  readonly metadata?: { readonly labels?: Readonly<Record<string, string>> }
  readonly spec?: DeepReadonly<PodSpec>
}

function sharesIn(copies: PlacedOn): Record<string, number> {
  const live = Object.entries(copies).filter(([, copy]) => hasCopy(copy))
  return Object.fromEntries(live.map(([name, { replicas = 0 }]) => [name, replicas]))
}

/** True if the data of the claim is in the member: the namespace there must stay. */
export function isClaimIn({ metadata: { annotations = {} } }: CachedObject, member: string): boolean {
  return annotations[memberAnnotation] === member || annotations[volumeAnnotation] === member
}

/**
 * True while the member has, or should have, something of this workload. Only the scheduler brings a workload into a member:
 * a finalizer alone, whoever wrote it, leads to no object there.
 */
export function isInMember(workload: CachedObject, member: string): boolean {
  const copy = placedOn(workload as KubeObject)[member]
  if (copy === undefined || !isPlaceable(workload)) return false
  const deleting = workload.metadata.deletionTimestamp !== undefined
  const leaving = workload.metadata.finalizers?.includes(syncerFinalizer(member)) ?? false
  return leaving || (!deleting && hasCopy(copy))
}
