// The sealed values of the database, and their form at rest.
import type { DatabaseSync } from 'node:sqlite'
import { StoreError, type ObjectKey } from '#store/store.ts'
import type { Seal } from '#store/seal.ts'

// JSON begins with `{` or is `null`.
const prefix = Buffer.from('sealed:')
/** Rows that are sealed at a time when an older database is opened. */
const batchRows = 500

/** Secrets: of tenants, and those of the installation, such as kubeconfigs of members. */
export const sealedResource = 'secrets'

/** What is written for `value`. */
export function sealedValue(seal: Seal, key: ObjectKey, value: Uint8Array): Uint8Array {
  return key.resource === sealedResource ? Buffer.concat([prefix, Buffer.from(seal.close(key, value))]) : value
}

/** What was written. Throws StoreError Unavailable for what was not sealed with this key for this object. */
export function openedValue(seal: Seal, key: ObjectKey, stored: Uint8Array): Uint8Array {
  if (key.resource !== sealedResource) return stored
  const bytes = Buffer.from(stored.buffer, stored.byteOffset, stored.byteLength)
  if (!bytes.subarray(0, prefix.length).equals(prefix))
    throw new StoreError('Unavailable', `what is stored as "${key.resource}/${key.name}" is not sealed`)
  return seal.open(key, bytes.toString('latin1', prefix.length))
}

/** Seals what a database of an older format holds in the clear. To be run in a transaction. */
export function sealAll(database: DatabaseSync, seal: Seal): void {
  for (const table of ['objects', 'deletions']) {
    const next = database.prepare(
      `SELECT rowid AS id, cluster, resource, namespace, name, value FROM ${table}
       WHERE resource = ? AND rowid > ? ORDER BY rowid LIMIT ${batchRows}`,
    )
    const update = database.prepare(`UPDATE ${table} SET value = ? WHERE rowid = ?`)
    let last = 0
    for (;;) {
      const rows = next.all(sealedResource, last) as unknown as (ObjectKey & { id: number; value: Uint8Array })[]
      for (const row of rows) update.run(sealedValue(seal, row, row.value), row.id)
      if (rows.length < batchRows) break
      last = rows.at(-1)?.id ?? last
    }
  }
  const bytes = 'coalesce((SELECT sum(length(value)) FROM deletions), 0)'
  database.exec(`UPDATE meta SET deletion_bytes = ${bytes}`)
}
