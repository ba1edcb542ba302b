// The copies in the member that others have changed there, where the tenant's Placement says that such changes are
// reported: for conditions and Events of tenants' objects.
import type { FailureSubject } from './sync-failures.ts'

/** One field that somebody in the member has changed. */
export interface DriftedField {
  readonly path: string
  /** The manager of the field in the member; undefined: the field is gone. */
  readonly manager?: string
}

/** How many copies of one member are remembered; more are told by Events only. */
const maxDrifted = 2000
const maxFields = 10
const maxLength = 1024

export class Drifts {
  /** By subject: what is told of it. */
  readonly #texts = new Map<string, string>()

  /** The words for the fields, in which nothing but letters of a line is left of what the member says. */
  static textOf(fields: readonly DriftedField[]): string {
    const told = fields
      .slice(0, maxFields)
      .map(({ path, manager }) => `${path} ${manager === undefined ? 'is removed' : `is changed by "${manager}"`}`)
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
      this.#texts.delete(key)
      return undefined
    }
    const text = Drifts.textOf(fields)
    if (this.#texts.size < maxDrifted || this.#texts.has(key)) this.#texts.set(key, text)
    return text
  }

  /** What others have changed in the copy; undefined: nothing. */
  of(subject: FailureSubject): string | undefined {
    return this.#texts.get(keyOf(subject))
  }
}

function keyOf({ resource, cluster, namespace, name }: FailureSubject): string {
  return `${resource} ${cluster}|${namespace}/${name}`
}
