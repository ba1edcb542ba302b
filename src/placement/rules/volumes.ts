// The volumes of a workload: which claims it uses, and which members have their data.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import {
  arrivingStates,
  hasEnded,
  memberAnnotation,
  placedOn,
  templateOf,
  volumeAnnotation,
  type CopyState,
  type PlacedCopy,
} from '#crds/index.ts'

type CachedObject = DeepReadonly<KubeObject>

interface Spec {
  readonly volumeClaimTemplates?: readonly { readonly metadata?: { readonly name?: string } }[]
}
interface PodTemplate {
  readonly spec?: { readonly volumes?: readonly { readonly persistentVolumeClaim?: { readonly claimName?: string } }[] }
}

/** The member that has data of a claim; undefined while no member has. */
export function memberOfClaim({ metadata: { annotations = {} } }: CachedObject): string | undefined {
  return annotations[volumeAnnotation] ?? annotations[memberAnnotation]
}

/** Whether its pods use a claim that one node at a time may write: two copies must not run at the same time. */
export function usesSingleWriterVolume(workload: CachedObject, claims: Iterable<CachedObject>): boolean {
  const { volumes = [] } = (templateOf(workload) as PodTemplate | undefined)?.spec ?? {}
  const named = new Set(volumes.map((volume) => volume.persistentVolumeClaim?.claimName))
  named.delete(undefined)
  if (named.size === 0) return false
  for (const { metadata, ...claim } of claims) {
    const { accessModes = [] } = ((claim as { spec?: unknown }).spec ?? {}) as { accessModes?: readonly string[] }
    if (!named.has(metadata.name)) continue
    if (accessModes.some((mode) => mode === 'ReadWriteOnce' || mode === 'ReadWriteOncePod')) return true
  }
  return false
}

/** The claims of the workload that have data in a member. `claims`: the claims of its namespace. */
export function claimsWithData(workload: CachedObject, claims: Iterable<CachedObject>): CachedObject[] {
  const uses = claimsOf(workload)
  return uses === undefined ? [] : [...claims].filter((claim) => memberOfClaim(claim) !== undefined && uses(claim))
}

/** The members with data of these claims. */
export function membersOfClaims(claims: readonly CachedObject[]): string[] {
  return [...new Set(claims.flatMap((claim) => memberOfClaim(claim) ?? []))].sort()
}

/** Whether pods of the workload use the claim, which is in its namespace. */
export function usesClaim(workload: CachedObject, claim: Pick<CachedObject, 'metadata'>): boolean {
  return claimsOf(workload)?.(claim) ?? false
}

/** Whether pods of the workload use the claim, or may still do so: a Job or pod that has ended never runs again. */
export function needsClaim(workload: CachedObject, claim: Pick<CachedObject, 'metadata'>): boolean {
  return usesClaim(workload, claim) && !hasEnded(workload)
}

/** Whether the claim goes with its pod, which alone uses it: that of a generic ephemeral volume. */
export function endsWithPod({ metadata: { ownerReferences = [] } }: Pick<CachedObject, 'metadata'>): boolean {
  return ownerReferences.some(({ kind, controller }) => kind === 'Pod' && controller === true)
}

/** The ordinal of the StatefulSet's pod that alone uses the claim; undefined for any other claim. */
export function ordinalOfClaim(
  workload: CachedObject,
  { metadata: { name = '' } }: Pick<CachedObject, 'metadata'>,
): number | undefined {
  const { volumes = [] } = (templateOf(workload) as PodTemplate | undefined)?.spec ?? {}
  if (workload.kind !== 'StatefulSet' || volumes.some((one) => one.persistentVolumeClaim?.claimName === name))
    return undefined
  const { volumeClaimTemplates = [] } = (workload['spec'] ?? {}) as Spec
  for (const { metadata } of volumeClaimTemplates) {
    const prefix = `${metadata?.name ?? ''}-${workload.metadata.name ?? ''}-`
    const ordinal = name.startsWith(prefix) ? name.slice(prefix.length) : ''
    if (/^(0|[1-9]\d{0,8})$/.test(ordinal)) return Number(ordinal)
  }
  return undefined
}

/**
 * The first claim that a member must have made for the StatefulSet, and that is not in the logical cluster; undefined:
 * there is none. The controller of a StatefulSet makes the claims of a pod before the pod, so as many ordinals from
 * `start` to before `end` have claims as the member has `pods`. `claims`: those of the namespace.
 */
export function unknownClaim(
  workload: CachedObject,
  claims: Iterable<Pick<CachedObject, 'metadata'>>,
  { start, end, pods }: { readonly start: number; readonly end: number; readonly pods: number },
): string | undefined {
  const { volumeClaimTemplates = [] } = (workload['spec'] ?? {}) as Spec
  const least = Math.min(pods, end - start)
  if (workload.kind !== 'StatefulSet' || volumeClaimTemplates.length === 0 || least <= 0) return undefined
  const prefixes = volumeClaimTemplates.map(
    ({ metadata }) => `${metadata?.name ?? ''}-${workload.metadata.name ?? ''}-`,
  )
  const known = new Set<string>()
  for (const { metadata } of claims) known.add(metadata.name ?? '')
  let complete = 0
  let first: string | undefined
  // At most one step for each known claim, and one more.
  for (let ordinal = start; ordinal < end && complete < least; ordinal++) {
    const lacking = prefixes.find((prefix) => !known.has(`${prefix}${ordinal}`))
    if (lacking === undefined) complete += 1
    else {
      first ??= `${lacking}${ordinal}`
      if (ordinal - start > known.size) break
    }
  }
  return complete < least ? first : undefined
}

const leavingGates: readonly string[] = ['SuccessorKnown', 'VolumesCopied', 'OrdinalsMoved']
/** States of a copy that ends, or has ended. */
const leftStates: readonly CopyState[] = ['Lost', 'Fenced', 'Draining', 'Forwarding', 'Terminating']
/** States of a copy that runs, and stays if it does not wait to leave. */
const stayingStates: readonly CopyState[] = [...arrivingStates, 'Serving', 'Lost']

/**
 * The member in which the workload waits for the claim, whose data is in another one, by the scheduler's record;
 * undefined: it does not wait, or the record is not clear.
 */
export function awaitedIn(
  workload: CachedObject,
  claim: Pick<CachedObject, 'metadata'>,
  from: string,
): string | undefined {
  const taker = takerOf(workload, claim)
  if (taker !== undefined) return taker === from ? undefined : taker
  const placed = placedOn(workload as KubeObject)
  const old = placed[from]
  const isLeft = old === undefined || isLeaving(old) || leftStates.includes(old.state)
  const found = Object.keys(placed).filter((member) => {
    const copy = placed[member]
    if (copy === undefined || member === from) return false
    // A StatefulSet may run in both members: that it moves pod by pod can end half-way, and with it the range.
    const isTaking = workload.kind === 'StatefulSet' && stayingStates.includes(copy.state) && !isLeaving(copy)
    return copy.state === 'Assumed' || (isLeft && isTaking)
  })
  return found.length === 1 ? found[0] : undefined
}

/** The member that gets the pod of the claim next, and waits for its data; undefined: none, or the pod is somewhere. */
export function takerOf(workload: CachedObject, claim: Pick<CachedObject, 'metadata'>): string | undefined {
  const ordinal = ordinalOfClaim(workload, claim)
  if (ordinal === undefined) return undefined
  const placed = placedOn(workload as KubeObject)
  return Object.keys(placed).find((member) => placed[member]?.awaits === ordinal)
}

function isLeaving(copy: PlacedCopy | undefined): boolean {
  return copy?.wait !== undefined && leavingGates.includes(copy.wait.gate)
}

/** Tells which claims of its namespace the workload uses; undefined: none. */
function claimsOf(workload: CachedObject): ((claim: Pick<CachedObject, 'metadata'>) => boolean) | undefined {
  const { volumes = [] } = (templateOf(workload) as PodTemplate | undefined)?.spec ?? {}
  const named = new Set(volumes.map((volume) => volume.persistentVolumeClaim?.claimName))
  const { volumeClaimTemplates = [] } = (workload['spec'] ?? {}) as Spec
  if (named.size === 0 && volumeClaimTemplates.length === 0) return undefined
  const prefixes = volumeClaimTemplates.map(
    ({ metadata }) => `${metadata?.name ?? ''}-${workload.metadata.name ?? ''}-`,
  )
  return ({ metadata: { name = '' } }) =>
    named.has(name) || prefixes.some((prefix) => name.startsWith(prefix) && /^\d+$/.test(name.slice(prefix.length)))
}
