// The messages about objects that a syncer cannot sync, on the objects and in the condition of the member.

export interface SyncFailureReport {
  /** How many objects of tenants fail. */
  readonly objects: number
  /** One of them, and why it fails. */
  readonly first: string
}

/** What condition SyncFailing of the member says. */
export function syncFailureText({ objects, first }: SyncFailureReport): string {
  return objects === 1 ? `an object cannot be synced: ${first}` : `${objects} objects cannot be synced; one is ${first}`
}
