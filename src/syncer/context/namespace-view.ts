// The workloads that one namespace of a logical cluster has in one member, and the objects to which they refer.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { Change, DeepReadonly } from '#client/index.ts'
import {
  hasCopy,
  isPlaceable,
  memberAnnotation,
  placedOn,
  syncerFinalizer,
  templateOf,
  volumeAnnotation,
  type PlacedOn,
} from '#crds/index.ts'
import type { PodSpec } from '#syncer/transform/pod-types.ts'
import { isOrphanIn } from './orphans.ts'
import {
  accountReferences,
  asOrdinalClaim,
  claimReferences,
  ingressReferences,
  referencesOf,
  type Reference,
} from './references.ts'
import type { CachedObject } from './resources.ts'

/** A workload that several members run together. */
export interface DividedWorkload {
  readonly podLabels: Readonly<Record<string, string>>
  /** By member: its part of the replicas. */
  readonly replicas: Readonly<Record<string, number>>
  /** A StatefulSet that moves pod by pod: one of its pods may be away. */
  readonly isMoving?: true
}

export type ContentChange = Pick<Change<KubeObject>, 'before' | 'after'>

/** The objects of a namespace that decide which of its objects a member gets. */
export interface NamespaceContent {
  readonly workloads: Iterable<CachedObject>
  readonly claims: Iterable<CachedObject>
  readonly ingresses: Iterable<CachedObject>
  readonly accounts: Iterable<CachedObject>
}

/** What one workload in the member adds to the view of its namespace. */
interface WorkloadPart {
  readonly isServing: boolean
  readonly references: readonly string[]
  readonly isWhole: boolean
  readonly isAsleep: boolean
  readonly divided?: DividedWorkload
}

/**
 * The view is updated by each change of a workload, claim, Ingress or ServiceAccount. The cost of an update does not
 * depend on the number of other objects.
 */
export class NamespaceView {
  readonly #member: string
  readonly #isReached: () => boolean
  /** The workloads in the member by `KIND/NAME`. */
  readonly #workloads = new Map<string, WorkloadPart>()
  readonly #divided = new Map<string, DividedWorkload>()
  readonly #claims = new Set<string>()
  readonly #ingresses = new Map<string, readonly string[]>()
  readonly #accounts = new Map<string, readonly string[]>()
  readonly #ofWorkloads = new ReferenceCounts()
  readonly #ofIngresses = new ReferenceCounts()
  /** The references of the ServiceAccounts that workloads in the member use. */
  readonly #ofAccounts = new ReferenceCounts()
  #serving = 0

  /** `isReached`: the logical cluster has pods in the member that may use Services of every namespace. */
  constructor(content: NamespaceContent, member: string, isReached: () => boolean) {
    this.#member = member
    this.#isReached = isReached
    for (const workload of content.workloads) this.changeWorkload({ before: undefined, after: workload })
    for (const account of content.accounts) this.changeAccount({ before: undefined, after: account })
    for (const claim of content.claims) this.changeClaim({ before: undefined, after: claim })
    for (const ingress of content.ingresses) this.changeIngress({ before: undefined, after: ingress })
  }

  /** Whether a workload of this namespace is in the member, or should be. */
  get present(): boolean {
    return this.#workloads.size > 0
  }

  /**
   * Whether a workload of this namespace serves in the member. While none does, new clients should not be told the
   * member's addresses.
   */
  get serves(): boolean {
    return this.#serving > 0
  }

  /** Whether the namespace must exist in the member, because it has a workload or the data of a claim there. */
  get needed(): boolean {
    return this.present || this.#claims.size > 0
  }

  /** Whether Services of this namespace should be in the member. */
  get servicesWanted(): boolean {
    return this.present || this.#isReached()
  }

  /** By `KIND/NAME`: the workloads that this member runs together with others. */
  get divided(): ReadonlyMap<string, DividedWorkload> {
    return this.#divided
  }

  /**
   * Whether workloads in the member (also those that are being removed), their ServiceAccounts, or Ingresses beside
   * them refer to the object, such as `configmaps/NAME`.
   */
  refersTo(reference: string): boolean {
    const ordinalClaim = reference.startsWith(claimPrefix) && asOrdinalClaim(reference.slice(claimPrefix.length))
    return (
      this.#ofWorkloads.has(reference) ||
      (ordinalClaim && this.#ofWorkloads.has(ordinalClaim.reference)) ||
      this.#ofAccounts.has(reference) ||
      (this.present && this.#ofIngresses.has(reference))
    )
  }

  /** All references for which refersTo is true; claims of StatefulSets in the form of claimReferences. */
  references(): Set<string> {
    const ofIngresses = this.present ? this.#ofIngresses.all() : []
    return new Set([...this.#ofWorkloads.all(), ...this.#ofAccounts.all(), ...ofIngresses])
  }

  /** Whether the member alone runs all replicas of the workload `KIND/NAME`, or should. */
  runsWhole(workload: string): boolean {
    return this.#workloads.get(workload)?.isWhole ?? false
  }

  /** Whether the workload `KIND/NAME` has no pods because its logical cluster is asleep. */
  isAsleep(workload: string): boolean {
    return this.#workloads.get(workload)?.isAsleep ?? false
  }

  placedHere(workload: CachedObject): boolean {
    return hasCopy(placedOn(workload as KubeObject)[this.#member])
  }

  /** Takes in the change of a workload. Returns the references that may have been added or removed by it. */
  changeWorkload({ before, after }: ContentChange): readonly string[] {
    const key = workloadName(after ?? before)
    const [was, is] = [this.#workloads.get(key), after && partOf(after, this.#member)]
    const wasPresent = this.present
    if (is === undefined) this.#workloads.delete(key)
    else this.#workloads.set(key, is)
    this.#serving += Number(is?.isServing ?? false) - Number(was?.isServing ?? false)
    if (is?.divided === undefined) this.#divided.delete(key)
    else this.#divided.set(key, is.divided)
    const named = this.#ofWorkloads.replace(was?.references ?? [], is?.references ?? [])
    const changed = [...named, ...named.flatMap((reference) => this.#accountUsed(reference))]
    return wasPresent === this.present ? changed : [...changed, ...this.#ofIngresses.all()]
  }

  changeClaim({ before, after }: ContentChange): void {
    const name = (after ?? before)?.metadata.name ?? ''
    if (after !== undefined && isClaimIn(after, this.#member)) this.#claims.add(name)
    else this.#claims.delete(name)
  }

  /** Takes in the change of a ServiceAccount. Returns the references that may have been added or removed by it. */
  changeAccount({ before, after }: ContentChange): readonly string[] {
    const name = (after ?? before)?.metadata.name ?? ''
    const was = this.#accounts.get(name) ?? []
    const is = after === undefined ? [] : textsOf(accountReferences(after))
    if (is.length === 0) this.#accounts.delete(name)
    else this.#accounts.set(name, is)
    return this.#ofWorkloads.has(`${accountPrefix}${name}`) ? this.#ofAccounts.replace(was, is) : []
  }

  /** Adds the references of a ServiceAccount with the first workload that uses it; removes them with the last one. */
  #accountUsed(reference: string): readonly string[] {
    if (!reference.startsWith(accountPrefix)) return []
    const own = this.#accounts.get(reference.slice(accountPrefix.length)) ?? []
    return this.#ofWorkloads.has(reference) ? this.#ofAccounts.replace([], own) : this.#ofAccounts.replace(own, [])
  }

  /** Takes in the change of an Ingress. Returns the references that may have been added or removed by it. */
  changeIngress({ before, after }: ContentChange): readonly string[] {
    const name = (after ?? before)?.metadata.name ?? ''
    const was = this.#ingresses.get(name) ?? []
    const is = after === undefined ? [] : textsOf(ingressReferences(after))
    if (is.length === 0) this.#ingresses.delete(name)
    else this.#ingresses.set(name, is)
    const changed = this.#ofIngresses.replace(was, is)
    return this.present ? changed : []
  }
}

/** References, each with the number of objects that have it. */
class ReferenceCounts {
  readonly #counts = new Map<string, number>()

  has(reference: string): boolean {
    return this.#counts.has(reference)
  }

  all(): Iterable<string> {
    return this.#counts.keys()
  }

  /**
   * Counts the references `after` of one object instead of `before`, each without duplicates. Returns the references
   * that no object had before, or that no object has any more.
   */
  replace(before: readonly string[], after: readonly string[]): string[] {
    const changed = new Set<string>()
    const add = (reference: string, difference: number): void => {
      const had = this.#counts.get(reference) ?? 0
      const has = had + difference
      if (has === 0) this.#counts.delete(reference)
      else this.#counts.set(reference, has)
      if ((had === 0) === (has === 0)) return
      // A reference that is added and removed by the same call has not changed.
      if (!changed.delete(reference)) changed.add(reference)
    }
    for (const reference of after) add(reference, 1)
    for (const reference of before) add(reference, -1)
    return [...changed]
  }
}

const accountPrefix = 'serviceaccounts/'
const claimPrefix = 'persistentvolumeclaims/'

function textsOf(references: readonly Reference[]): string[] {
  return [...new Set(references.map(({ resource, name }) => `${resource}/${name}`))]
}

function workloadName(workload: CachedObject | undefined): string {
  return `${workload?.kind}/${workload?.metadata.name ?? ''}`
}

function partOf(workload: CachedObject, member: string): WorkloadPart | undefined {
  if (!isInMember(workload, member)) return undefined
  const copies = placedOn(workload as KubeObject)
  const copy = copies[member]
  const isServing = copy?.state === 'Serving' || isOrphanIn(workload, member)
  // Nothing of the workload is left, so it refers to nothing; but clients still use its Ingresses and Services.
  if (copy?.state === 'Forwarding') return { isServing, references: [], isWhole: false, isAsleep: false }
  const template = templateOf(workload) as PodTemplate | undefined
  const named = template?.spec === undefined ? [] : referencesOf(template.spec)
  const references = textsOf([...named, ...claimReferences(workload)])
  const isWhole = copy?.replicas === undefined
  const isAsleep = copy?.asleep ?? false
  if (isWhole) return { isServing, references, isWhole, isAsleep }
  const podLabels = template?.metadata?.labels ?? {}
  const divided = {
    podLabels,
    replicas: sharesIn(copies),
    ...(copy.start !== undefined && { isMoving: true as const }),
  }
  return { isServing, references, isWhole, isAsleep, divided }
}

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
 * True while the member has, or should have, something of this workload. Only the scheduler brings a workload into a
 * member: a finalizer alone, whoever wrote it, leads to no object there. Orphans are there because their workload was.
 */
export function isInMember(workload: CachedObject, member: string): boolean {
  if (isOrphanIn(workload, member)) return true
  const copy = placedOn(workload as KubeObject)[member]
  if (copy === undefined || !isPlaceable(workload)) return false
  const deleting = workload.metadata.deletionTimestamp !== undefined
  const leaving = workload.metadata.finalizers?.includes(syncerFinalizer(member)) ?? false
  return leaving || (!deleting && hasCopy(copy))
}
