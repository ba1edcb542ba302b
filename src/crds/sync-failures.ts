// What a syncer says of the objects that it cannot sync, and what the condition of the member says of them.

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
