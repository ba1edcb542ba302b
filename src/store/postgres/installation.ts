// An installation's data in a schema: who may write them, and how much history there is.
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { ClusterId, Revision } from '#apimachinery/meta/index.ts'
import type { ClustersByResource } from '#store/clusters-by-resource.ts'
import { KeyBytes } from '#store/key-bytes.ts'
import type { Seal } from '#store/seal.ts'
import { StoreError, type Succession } from '#store/store.ts'
import type { EventStream } from './event-stream.ts'
import { createFunction, createTables, layout, quoted } from './schema.ts'
import { Outage, type Servers, type Session } from './servers.ts'

/** Old changes that one statement deletes. */
const trimStep = 200

/** Keys begin with one byte, so that a range always has an end. */
export const objects = new KeyBytes('o')

export interface Owner {
  readonly instance: string
  /** Differs for every start. */
  readonly process: string
  readonly writeBatch: string
}

interface TakingOver {
  readonly owner: string
  readonly seal: Seal
  /** No other process writes these data. */
  readonly isAlone: boolean
  /** Of the schema, for messages. */
  readonly name: string
  readonly succession: Succession | undefined
  /** Data that are not there are refused. */
  readonly mustExist: boolean
}

/** Creates what is missing, and writes that this process is the writer from now on, unless there are several. */
export async function takeOver(
  servers: Servers,
  schema: string,
  { owner, seal, isAlone, name, succession, mustExist }: TakingOver,
): Promise<Owner> {
  const process = randomUUID()
  const writeBatch = functionName(schema)
  return await servers.session(async (session) => {
    await run(session, 'BEGIN')
    // Two processes may start at once.
    await run(session, `SELECT pg_advisory_xact_lock(hashtextextended($1, 0))::text`, [`kcp ${name}`])
    const [found] = await session.rows<{ is: boolean; schema: boolean }>({
      text: `SELECT to_regclass($1) IS NOT NULL AS is, to_regnamespace($2) IS NOT NULL AS schema`,
      values: [`${schema}.meta`, schema],
    })
    if (mustExist && found?.is !== true)
      throw new StoreError('Unavailable', `schema ${name} in PostgreSQL has no data of kcp: say the one that has`)
    if (found?.schema !== true) await run(session, `CREATE SCHEMA ${schema}`)
    if (found?.is !== true) {
      await requireEmpty(session, name)
      for (const statement of createTables(schema)) await run(session, statement)
      const first = `INSERT INTO ${schema}.meta (layout, instance, owner, key_id, process, revision, history_from, trimmed)
        VALUES (${layout}, $1, $2, $3, $4, $5, $5, $5)`
      const { instanceId, revision } = succession ?? { instanceId: randomUUID(), revision: 1 }
      await run(session, first, [instanceId, owner, seal.keyId, process, revision])
    }
    const [meta] = await session.rows<{ layout: number; instance: string; owner: string; key_id: string }>({
      text: `SELECT layout, instance, owner, key_id FROM ${schema}.meta`,
    })
    if (meta === undefined || meta.layout > layout)
      throw new StoreError(
        'Unavailable',
        `schema ${name} in PostgreSQL is of a newer version of kcp: start that version`,
      )
    if (meta.owner !== owner)
      throw new StoreError(
        'Unavailable',
        `schema ${name} in PostgreSQL holds the data of ${meta.owner}: choose another schema, or start from there`,
      )
    if (succession !== undefined && meta.instance !== succession.instanceId)
      throw new StoreError('Unavailable', `schema ${name} in PostgreSQL has data already: choose another schema`)
    // A migration that goes on: the store that is replaced may have been written to meanwhile.
    if (succession !== undefined)
      await run(
        session,
        `UPDATE ${schema}.meta SET revision = greatest(revision, $1), history_from = greatest(history_from, $1)`,
        [succession.revision],
      )
    if (!seal.opens(meta.key_id))
      throw new StoreError(
        'Unavailable',
        `Secrets in schema ${name} in PostgreSQL are sealed with another key: restore its file`,
      )
    const [known] = await session.rows<{ is: boolean }>({
      text: `SELECT EXISTS (SELECT FROM pg_proc WHERE proname = $1 AND pronamespace = to_regnamespace($2)) AS is`,
      values: [writeBatch, schema],
    })
    if (known?.is !== true) await run(session, createFunction(schema, writeBatch))
    if (isAlone) await run(session, `UPDATE ${schema}.meta SET process = $1`, [process])
    await run(session, 'COMMIT')
    return { instance: meta.instance, process, writeBatch }
  })
}

/** Programs of different versions may share the data for a while, each with its function. */
function functionName(schema: string): string {
  return `write_batch_${createHash('sha256').update(createFunction(schema, '')).digest('hex').slice(0, 8)}`
}

async function requireEmpty(session: Session, schema: string): Promise<void> {
  const [found] = await session.rows<{ name: string }>({
    text: 'SELECT relname::text AS name FROM pg_class WHERE relnamespace = to_regnamespace($1) LIMIT 1',
    values: [quoted(schema)],
  })
  if (found !== undefined)
    throw new StoreError('Unavailable', `schema ${schema} in PostgreSQL was not made by kcp: choose another schema`)
}

/**
 * Throws Outage if the server lacks changes that this process knows: it was promoted without having received all of its
 * predecessor's, and memory shows what is lost.
 */
export async function requireHistory(
  session: Session,
  schema: string,
  { revision, last }: { readonly revision: Revision; readonly last: EventStream['last'] },
): Promise<void> {
  const [found] = await session.rows<{ revision: number; from: number; key: Buffer | null }>({
    text: `SELECT m.revision, m.history_from AS from, l.key FROM ${schema}.meta m
      LEFT JOIN ${schema}.log l ON l.revision = $1`,
    values: [last?.revision ?? 0],
  })
  const isThere =
    found !== undefined &&
    found.revision >= revision &&
    (last === undefined ||
      found.from >= last.revision ||
      (found.key !== null && objects.key(last.key).equals(found.key)))
  if (isThere) return
  // Another server of the list may have all of them.
  throw new Outage(
    'PostgreSQL has gone back to an earlier state: changes that were acknowledged are lost; restart the program, and make its standbys synchronous',
  )
}

/** Counts the objects of each resource in each logical cluster. Returns the revision of that state. */
export async function countObjects(servers: Servers, schema: string, clusters: ClustersByResource): Promise<Revision> {
  const rows = await servers.session(
    async (session) => {
      await run(session, 'BEGIN')
      await run(session, 'SET LOCAL statement_timeout = 0')
      const found = await session.rows<{ now: number; head: Buffer | null; count: number | null }>({
        text: `SELECT m.revision AS now, t.head, t.count FROM ${schema}.meta m LEFT JOIN (
          SELECT substring(key FROM 1 FOR first + position('\\x00'::bytea IN substring(key FROM first + 1))) AS head, count(*)
          FROM (SELECT key, position('\\x00'::bytea IN key) AS first FROM ${schema}.keys) k GROUP BY 1
        ) t ON true`,
      })
      await run(session, 'COMMIT')
      return found
    },
    { ms: 10 * 60_000 },
  )
  for (const { head, count } of rows) {
    const [cluster = '', resource = ''] = head?.subarray(1).toString().split('\0') ?? []
    if (count !== null) clusters.add({ cluster: cluster as ClusterId, resource }, count)
  }
  return (rows[0]?.now ?? 1) as Revision
}

export async function run(session: Session, text: string, values: readonly unknown[] = []): Promise<void> {
  await session.rows({ text, values: [...values] })
}

/**
 * Deletes the changes up to `until` that no object has as its last one. First it is written that they may be missing,
 * then they are deleted in steps, and after each it is written how far that went: what was deleted may be deleted again.
 * No step holds the lock of the writes while it deletes.
 */
export async function trimHistory(
  servers: Servers,
  schema: string,
  { until, signal }: { until: number; signal: AbortSignal },
): Promise<void> {
  await servers.rows({
    text: `UPDATE ${schema}.meta SET history_from = $1 WHERE history_from < $1`,
    values: [until],
  })
  for (;;) {
    signal.throwIfAborted()
    const [done] = await servers.rows<{ upto: number | null }>(
      {
        text: `WITH step AS (
          SELECT revision, previous, value IS NULL AS is_deletion FROM ${schema}.log
          WHERE revision > (SELECT trimmed FROM ${schema}.meta) AND revision <= $1 ORDER BY revision LIMIT ${trimStep}
        ), gone AS (
          DELETE FROM ${schema}.log l USING step s
          WHERE l.revision = s.previous OR (s.is_deletion AND l.revision = s.revision)
        )
        SELECT max(revision) AS upto FROM step`,
        values: [until],
      },
      { ms: 30_000 },
    )
    if (done === undefined || done.upto === null) break
    await servers.rows({
      text: `UPDATE ${schema}.meta SET trimmed = greatest(trimmed, $1)`,
      values: [done.upto],
    })
    await sleep(10, undefined, { signal })
  }
  await servers.rows({ text: `DELETE FROM ${schema}.writers WHERE at < now() - interval '1 day'` })
}
