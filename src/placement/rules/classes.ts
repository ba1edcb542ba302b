// The classes that a workload names, itself or by its claims, and the classes of a member.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import { templateOf, type ClassKindName, type MemberCluster } from '#crds/index.ts'
import { memberOfClaim } from './volumes.ts'

/** A class that a workload or one of its claims names. */
export interface NamedClass {
  readonly kind: ClassKindName
  readonly name: string
}

/** Names of the classes of a member by kind. The classes of an absent kind are not known, so none counts as missing. */
export type ClassNames = ReadonlyMap<ClassKindName, ReadonlySet<string>>

/** The first named class that the member does not have. */
export function missingClass(wanted: readonly NamedClass[], known: ClassNames | undefined): NamedClass | undefined {
  return wanted.find(({ kind, name }) => known?.get(kind)?.has(name) === false)
}

type CachedObject = DeepReadonly<KubeObject>

interface Claim {
  readonly spec?: { readonly storageClassName?: string; readonly volumeName?: string }
}
interface Template {
  readonly spec?: {
    readonly runtimeClassName?: string
    readonly volumes?: readonly {
      readonly persistentVolumeClaim?: { readonly claimName?: string }
      readonly ephemeral?: { readonly volumeClaimTemplate?: Claim }
    }[]
  }
}

/**
 * The classes without which the pods of a workload would wait for ever. PriorityClasses are not among them: a member
 * without the named class runs the pods with another class of its own, or with none. A StorageClass that no member has
 * is not among them either: volumes that an admin made by hand may have its name. `claims` are those of the namespace;
 * a claim whose volume is in a member needs no class any more.
 */
export function namedClasses(
  workload: CachedObject,
  claims: () => Iterable<CachedObject>,
  members: () => readonly DeepReadonly<MemberCluster>[],
): NamedClass[] {
  const { runtimeClassName, volumes = [] } = (templateOf(workload) as Template | undefined)?.spec ?? {}
  const { volumeClaimTemplates = [] } = (workload['spec'] ?? {}) as { volumeClaimTemplates?: readonly Claim[] }
  const claimed = new Set(volumes.flatMap(({ persistentVolumeClaim }) => persistentVolumeClaim?.claimName ?? []))
  const inline = volumes.flatMap(({ ephemeral }) => ephemeral?.volumeClaimTemplate ?? [])
  const stored = claimed.size === 0 ? [] : [...claims()].filter((claim) => isOpen(claim, claimed))
  const storage = [...volumeClaimTemplates, ...inline, ...(stored as Claim[])].map(({ spec }) => spec?.storageClassName)
  const found: NamedClass[] = [...new Set(storage)].flatMap((name) =>
    name && members().some((member) => classNamesOf(member).get('StorageClass')?.has(name))
      ? [{ kind: 'StorageClass', name }]
      : [],
  )
  return runtimeClassName ? [{ kind: 'RuntimeClass', name: runtimeClassName }, ...found] : found
}

function isOpen(claim: CachedObject, claimed: ReadonlySet<string>): boolean {
  return claimed.has(claim.metadata.name ?? '') && memberOfClaim(claim) === undefined
}

const known = new WeakMap<object, ClassNames>()

/**
 * The names of a member's classes, computed once for each version of its status. A kind whose list was cut off is
 * absent.
 */
export function classNamesOf({ status }: DeepReadonly<MemberCluster>): ClassNames {
  const { classes } = status ?? {}
  if (classes === undefined) return new Map()
  let names = known.get(classes)
  if (names === undefined) {
    const complete = classes.filter(({ truncated = false }) => !truncated)
    names = new Map<ClassKindName, ReadonlySet<string>>(
      complete.map(({ kind, items }) => [kind, new Set(items.map(({ name }) => name))]),
    )
    known.set(classes, names)
  }
  return names
}

/** The StorageClass that a claim names. If it changes, the pods of the claim may have to run in another member. */
export function storageClassOf(claim: CachedObject | undefined): string | undefined {
  return (claim as Claim | undefined)?.spec?.storageClassName
}
