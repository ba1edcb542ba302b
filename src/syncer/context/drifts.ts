// The copies in the member that others have changed there, where the tenant's Placement says that such changes are
// reported: for conditions and Events of tenants' objects.
import type { FailureSubject } from './sync-failures.ts'

/** One field that somebody in the member has changed. */
export interface DriftedField {
  readonly path: string
  /** The manager of the field in the member; undefined: the field is gone, or the manager is not known. */
  readonly manager?: string
  /** Of a field that is gone: the hash of what kcp would write there. */
  readonly wanted?: string
}

interface Drift {
  readonly text: string
  /** Hashes of what kcp would write in the fields that are gone, by path. */
  readonly removed: ReadonlyMap<string, string>
}

/** How many copies of one member are remembered; more are told by Events only. */
const maxDrifted = 2000
const maxFields = 10
const maxLength = 1024

export class Drifts {
  readonly #bySubject = new Map<string, Drift>()

  /** The words for the fields, in which nothing but letters of a line is left of what the member says. */
  static textOf(fields: readonly DriftedField[]): string {
    const told = fields.slice(0, maxFields).map(({ path, manager, wanted }) => {
      if (manager !== undefined) return `${path} is changed by "${manager}"`
      return `${path} ${wanted === undefined ? 'is changed' : 'is removed'}`
    })
    const more = fields.length - told.length
    const text = [...told, ...(more > 0 ? [`and ${more} more`] : [])].join('; ')
    return text
      .replaceAll(/[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2066-\u2069]/g, ' ')
      .slice(0, maxLength)
  }

  /** Notes what has been changed in a copy. Empty: nothing. */
  note(subject: FailureSubject, fields: readonly DriftedField[]): string | undefined {
    const key = keyOf(subject)
    if (fields.length === 0) {
      this.#bySubject.delete(key)
      return undefined
    }
    const text = Drifts.textOf(fields)
    const removed = fields.flatMap(({ path, wanted }) => (wanted === undefined ? [] : [[path, wanted] as const]))
    if (this.#bySubject.size < maxDrifted || this.#bySubject.has(key))
      this.#bySubject.set(key, { text, removed: new Map(removed) })
    return text
  }

  /** What others have changed in the copy; undefined: nothing. */
  of(subject: FailureSubject): string | undefined {
    return this.#bySubject.get(keyOf(subject))?.text
  }

  /** The fields that others have removed from the copy, which stay removed until the tenant changes them. */
  removedFrom(subject: FailureSubject): ReadonlyMap<string, string> {
    return this.#bySubject.get(keyOf(subject))?.removed ?? new Map()
  }
}

function keyOf({ resource, cluster, namespace, name }: FailureSubject): string {
  return `${resource} ${cluster}|${namespace}/${name}`
}
