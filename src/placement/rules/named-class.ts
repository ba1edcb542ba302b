// The classes that a workload names must be in its member.
import type { ClassKindName } from '#crds/index.ts'

/** A class that a workload or one of its claims names. */
export interface NamedClass {
  readonly kind: ClassKindName
  readonly name: string
}

/** Names of the classes of a member by kind; a kind that is absent is not known, and refuses nothing. */
export type ClassNames = ReadonlyMap<ClassKindName, ReadonlySet<string>>

/** The first named class that the member does not have. */
export function missingClass(wanted: readonly NamedClass[], known: ClassNames | undefined): NamedClass | undefined {
  return wanted.find(({ kind, name }) => known?.get(kind)?.has(name) === false)
}
