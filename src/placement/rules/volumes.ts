// The volumes of a workload: which claims it uses, and which members have their data.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import { hasEnded, memberAnnotation, templateOf, volumeAnnotation } from '#crds/index.ts'

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
