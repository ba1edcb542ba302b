// The managers of an object and their fields while a write is computed. A manager is one entry of
// metadata.managedFields.
import type { ManagedFieldsEntry } from '#apimachinery/meta/index.ts'
import type { FieldSet } from './field-set.ts'

/** The fields of one manager, in the form of one version of the API. */
export interface Owned {
  readonly fields: FieldSet
  readonly apiVersion: string
  /** Whether the manager wrote by server-side apply, and not by any other write. */
  readonly applied: boolean
  /** The entry that the fields were read from, with its identifier. kcp wrote the entry, so its set is sorted. */
  readonly read?: { readonly identifier: string; readonly entry: ManagedFieldsEntry }
}

/** Managers by their identifiers: see `managerIdentifier`. */
export type Managers = ReadonlyMap<string, Owned>

/** A field of another manager that an applied configuration would change. */
export interface OwnershipConflict {
  /** The identifier of the manager that owns the field. */
  readonly manager: string
  readonly path: readonly string[]
}

/** An applied configuration would change fields of other managers. */
export class OwnershipConflicts extends Error {
  readonly conflicts: readonly OwnershipConflict[]

  constructor(conflicts: readonly OwnershipConflict[]) {
    super(`${conflicts.length} conflicts`)
    this.conflicts = conflicts
  }
}
