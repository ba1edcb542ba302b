// The managers of an object and their fields while a write is computed. A manager is one entry of
// metadata.managedFields.
import type { ManagedFieldsEntry } from '#apimachinery/meta/index.ts'
import type { FieldSet } from './field-set.ts'

/** What one manager owns, in the form of one version of the API. */
export interface Owned {
  readonly fields: FieldSet
  readonly apiVersion: string
  /** By server-side apply; else by any other write. */
  readonly applied: boolean
  /** The entry that it was read from, and whose: kcp wrote it, so its set is sorted. */
  readonly read?: { readonly identifier: string; readonly entry: ManagedFieldsEntry }
}

/** By the manager's identifier: see `managerIdentifier`. */
export type Managers = ReadonlyMap<string, Owned>

/** A field that somebody else owns and that an applied configuration would change. */
export interface OwnershipConflict {
  /** The identifier of who owns it. */
  readonly manager: string
  readonly path: readonly string[]
}

/** An applied configuration would change what others own. */
export class OwnershipConflicts extends Error {
  readonly conflicts: readonly OwnershipConflict[]

  constructor(conflicts: readonly OwnershipConflict[]) {
    super(`${conflicts.length} conflicts`)
    this.conflicts = conflicts
  }
}
