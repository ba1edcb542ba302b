// The SQL of the embedded store: one class over an open database, synchronous, independent of threads.
import type { DatabaseSync, SQLInputValue, StatementSync } from 'node:sqlite'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { openedValue, sealedResource, sealedValue, type Seal } from '#store/seal.ts'
import type { ListScope, ObjectKey } from '#store/store.ts'
import {
  valueAt,
  type Packer,
  type DatabaseAnswer,
  type PackedDeletion,
  type PackedObject,
  type ReadCall,
  type Values,
  type WriteCall,
} from './protocol.ts'

type Row = readonly [string, string, string, string, number, number, Uint8Array]

const columns = 'cluster, resource, namespace, name, revision, create_revision, value'
const byKey = 'cluster = ? AND resource = ? AND namespace = ? AND name = ?'

interface Counters {
  revision: number
  floor: number
  deletions: number
  deletionBytes: number
}

/** Deletions are trimmed in steps, so that not every deletion pays for it. */
const trimStep = 1000
/**
 * Maximum number of objects that `changes` returns for one resource over all logical clusters. For more, a new list by
 * the client is cheaper.
 */
const maxChangesOfAll = 20_000
const maxDeletionBytes = 64 * 1024 * 1024

/** Reads and writes an open database. A transaction is `begin`, some `write`, then `commit` or `rollback`. */
export class Tables {
  readonly #database: DatabaseSync
  readonly #keptDeletions: number
  readonly #seal: Seal | undefined
  readonly #statements = new Map<string, StatementSync>()
  #now: Counters
  #before: Counters
  #forgetting = false

  /** @param seal of a sealed database */
  constructor(database: DatabaseSync, keptDeletions: number, seal: Seal | undefined) {
    this.#database = database
    this.#keptDeletions = keptDeletions
    this.#seal = seal
    if (seal !== undefined) defineOpened(database, seal)
    const row = this.#sql('SELECT revision, floor, deletions, deletion_bytes FROM meta').get() as unknown as number[]
    const [revision = 1, floor = 0, deletions = 0, deletionBytes = 0] = row
    this.#now = { revision, floor, deletions, deletionBytes }
    this.#before = this.#now
  }

  get revision(): number {
    return this.#now.revision
  }

  begin(): void {
    this.#before = { ...this.#now }
    this.#forgetting = false
    this.#sql('BEGIN IMMEDIATE').run()
  }

  /** Drops all remembered deletions, those of this transaction included, to free space on a full disk. */
  forgetDeletions(): void {
    this.#sql('DELETE FROM deletions').run()
    this.#now.deletions = 0
    this.#now.deletionBytes = 0
    this.#forgetting = true
  }

  /** The transaction is on disk when this returns. */
  commit(): void {
    if (this.#forgetting) this.#now.floor = this.#now.revision
    this.#trim()
    const { revision, floor, deletions, deletionBytes } = this.#now
    this.#sql('UPDATE meta SET revision = ?, floor = ?, deletions = ?, deletion_bytes = ?').run(
      revision,
      floor,
      deletions,
      deletionBytes,
    )
    this.#sql('COMMIT').run()
  }

  rollback(): void {
    this.#now = this.#before
    // SQLite rolls back by itself when the disk is full.
    if (this.#database.isTransaction) this.#sql('ROLLBACK').run()
  }

  write(call: WriteCall, values: Values, packer: Packer): DatabaseAnswer {
    switch (call.do) {
      case 'create':
        return this.#create(call.key, valueAt(values, call.value), call.above)
      case 'update':
        return this.#update(call.key, valueAt(values, call.value), call.ifRevision)
      case 'delete':
        return this.#delete(call.key, call.ifRevision, packer)
      case 'deleteSome':
        return this.#deleteSome(call.cluster, call.limit, packer)
    }
  }

  read(call: ReadCall, packer: Packer): DatabaseAnswer {
    switch (call.do) {
      case 'get': {
        const row = this.#sql(`SELECT ${columns} FROM objects WHERE ${byKey}`).get(...keyOf(call.key)) as unknown as
          Row | undefined
        return { is: 'object', object: row && this.#pack(row, packer) }
      }
      case 'list':
        return this.#list(call.scope, call.limit, call.after, packer)
      case 'changes':
        return this.#changes(call, packer)
      case 'revision':
        return { is: 'revision', revision: this.#now.revision }
    }
  }

  #create(key: ObjectKey, value: Uint8Array, above = 0): DatabaseAnswer {
    const revision = Math.max(this.#now.revision, above) + 1
    const { changes } = this.#sql(
      `INSERT INTO objects (${columns}) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
    ).run(...keyOf(key), revision, revision, this.#atRest(key, value))
    if (Number(changes) === 0) return { is: 'error', code: 'KeyExists', message: `${keyText(key)} exists already` }
    this.#now.revision = revision
    return { is: 'put', revision, createRevision: revision }
  }

  #update(key: ObjectKey, value: Uint8Array, ifRevision: number): DatabaseAnswer {
    const revision = this.#now.revision + 1
    const row = this.#sql(
      `UPDATE objects SET revision = ?, value = ? WHERE ${byKey} AND revision = ? RETURNING create_revision`,
    ).get(revision, this.#atRest(key, value), ...keyOf(key), ifRevision) as unknown as [number] | undefined
    if (!row) return this.#mismatch(key, ifRevision)
    this.#now.revision = revision
    return { is: 'put', revision, createRevision: row[0] }
  }

  #delete(key: ObjectKey, ifRevision: number, packer: Packer): DatabaseAnswer {
    const row = this.#sql(`DELETE FROM objects WHERE ${byKey} AND revision = ? RETURNING ${columns}`).get(
      ...keyOf(key),
      ifRevision,
    ) as unknown as Row | undefined
    if (!row) return this.#mismatch(key, ifRevision)
    return { is: 'deleted', deletion: this.#remember(row, packer) }
  }

  #deleteSome(cluster: string, limit: number, packer: Packer): DatabaseAnswer {
    const rows = this.#sql(`SELECT ${columns} FROM objects WHERE cluster = ? LIMIT ?`).all(
      cluster,
      limit,
    ) as unknown as Row[]
    const remove = this.#sql(`DELETE FROM objects WHERE ${byKey}`)
    const deletions = rows.map((row) => {
      remove.run(row[0], row[1], row[2], row[3])
      return this.#remember(row, packer)
    })
    return { is: 'deletedSome', deletions }
  }

  #remember(row: Row, packer: Packer): PackedDeletion {
    const revision = ++this.#now.revision
    const [cluster, resource, namespace, name, lastRevision, createRevision, value] = row
    if (this.#forgetting) return { revision, previous: this.#pack(row, packer) }
    this.#sql('INSERT INTO deletions VALUES (?, ?, ?, ?, ?, ?, ?, ?)').run(
      revision,
      cluster,
      resource,
      namespace,
      name,
      lastRevision,
      createRevision,
      value,
    )
    this.#now.deletions++
    this.#now.deletionBytes += value.length
    return { revision, previous: this.#pack(row, packer) }
  }

  /** Drops the oldest deletions when there are too many, and raises the floor. */
  #trim(): void {
    while (
      this.#now.deletions > this.#keptDeletions + trimStep ||
      (this.#now.deletionBytes > maxDeletionBytes && this.#now.deletions > 0)
    ) {
      const rows = this.#sql('SELECT revision, length(value) FROM deletions ORDER BY revision LIMIT ?').all(
        trimStep,
      ) as unknown as [number, number][]
      const last = rows.at(-1)
      if (!last) return
      this.#sql('DELETE FROM deletions WHERE revision <= ?').run(last[0])
      this.#now.floor = last[0]
      this.#now.deletions -= rows.length
      for (const [, length] of rows) this.#now.deletionBytes -= length
    }
  }

  #mismatch(key: ObjectKey, ifRevision: number): DatabaseAnswer {
    const row = this.#sql(`SELECT revision FROM objects WHERE ${byKey}`).get(...keyOf(key)) as unknown as
      [number] | undefined
    if (!row) return { is: 'error', code: 'KeyMissing', message: `${keyText(key)} does not exist` }
    return {
      is: 'error',
      code: 'RevisionMismatch',
      message: `${keyText(key)} is at revision ${row[0]}, not ${ifRevision}`,
    }
  }

  #list(scope: ListScope, limit: number | undefined, after: ObjectKey | undefined, packer: Packer): DatabaseAnswer {
    const wanted = limit === undefined ? Number.MAX_SAFE_INTEGER : limit + 1
    const objects: PackedObject[] = []
    // Packs row by row: all rows together with their copies would take twice the memory.
    const add = (rows: Iterable<Row>): void => {
      for (const row of rows) objects.push(this.#pack(row, packer))
    }
    if (scope.cluster !== undefined || (scope.resource === undefined && scope.namespace === undefined)) {
      add(this.#range(scope, after, wanted))
    } else {
      // One resource over all logical clusters: a seek for each cluster, because an index would slow down every create.
      for (const cluster of this.#clusters(after?.cluster)) {
        const within = after?.cluster === cluster ? after : undefined
        add(this.#range({ ...scope, cluster }, within, wanted - objects.length))
        if (objects.length >= wanted) break
      }
    }
    const more = limit !== undefined && objects.length > limit
    if (more) objects.length = limit
    return { is: 'list', objects, revision: this.#now.revision, more }
  }

  #range(scope: ListScope, after: ObjectKey | undefined, limit: number): Iterable<Row> {
    const terms: string[] = []
    const values: SQLInputValue[] = []
    const open: (keyof ObjectKey)[] = []
    for (const column of ['cluster', 'resource', 'namespace', 'name'] as const) {
      const value = column === 'name' ? undefined : scope[column]
      if (value === undefined) open.push(column)
      else {
        terms.push(`${column} = ?`)
        values.push(value)
      }
    }
    if (after) {
      terms.push(`(${open.join(', ')}) > (${open.map(() => '?').join(', ')})`)
      for (const column of open) values.push(after[column])
    }
    if (scope.containing !== undefined) {
      const value = this.#seal === undefined ? 'value' : openedSql
      terms.push(`(${scope.containing.map(() => `instr(${value}, ?) > 0`).join(' OR ') || 'FALSE'})`)
      // Passes bytes: with a string, SQLite would first decode every value.
      for (const text of scope.containing) values.push(Buffer.from(text))
    }
    const where = terms.length > 0 ? `WHERE ${terms.join(' AND ')}` : ''
    return this.#sql(
      `SELECT ${columns} FROM objects ${where} ORDER BY cluster, resource, namespace, name LIMIT ?`,
    ).iterate(...values, limit) as unknown as Iterable<Row>
  }

  *#clusters(from: ClusterId | undefined): Generator<ClusterId> {
    const next = this.#sql('SELECT cluster FROM objects WHERE cluster > ? ORDER BY cluster LIMIT 1')
    let cluster = from
    if (cluster !== undefined) yield cluster
    for (;;) {
      const row = next.get(cluster ?? '') as unknown as [ClusterId] | undefined
      if (!row) return
      cluster = row[0]
      yield cluster
    }
  }

  #changes(call: Extract<ReadCall, { do: 'changes' }>, packer: Packer): DatabaseAnswer {
    const { since, cluster, resource } = call
    if (since < this.#now.floor) {
      return {
        is: 'error',
        code: 'Compacted',
        message: `changes after revision ${since} are no longer known, only after ${this.#now.floor}`,
      }
    }
    const puts: PackedObject[] = []
    const only = resource === undefined ? '' : ' AND resource = ?'
    const wanted = resource === undefined ? [] : [resource]
    for (const one of cluster === undefined ? this.#clusters(undefined) : [cluster]) {
      const rows = this.#sql(
        `SELECT ${columns} FROM objects INDEXED BY objects_by_revision WHERE cluster = ? AND revision > ?${only}`,
      ).all(one, since, ...wanted) as unknown as Row[]
      for (const row of rows) puts.push(this.#pack(row, packer))
      if (cluster === undefined && resource !== undefined && puts.length > maxChangesOfAll)
        return { is: 'error', code: 'Compacted', message: `more than ${maxChangesOfAll} changes after ${since}` }
    }
    const inCluster = cluster === undefined ? '' : ' AND cluster = ?'
    const rows = this.#sql(
      `SELECT cluster, resource, namespace, name, last_revision, create_revision, value, revision
       FROM deletions WHERE revision > ?${inCluster}${only} ORDER BY revision`,
    ).all(since, ...(cluster === undefined ? [] : [cluster]), ...wanted) as unknown as [...Row, number][]
    const deletions = rows.map((row) => ({ revision: row[7], previous: this.#pack(row as unknown as Row, packer) }))
    return { is: 'changes', puts, deletions, revision: this.#now.revision }
  }

  #atRest(key: ObjectKey, value: Uint8Array): Uint8Array {
    return this.#seal === undefined ? value : sealedValue(this.#seal, key, value)
  }

  #pack(row: Row, packer: Packer): PackedObject {
    const [cluster, resource, namespace, name, revision, createRevision, stored] = row
    const key = { cluster: cluster as ClusterId, resource, namespace, name }
    const value = this.#seal === undefined ? stored : openedValue(this.#seal, key, stored)
    const { at, length } = packer.add(value)
    return [cluster, resource, namespace, name, revision, createRevision, at, length]
  }

  #sql(text: string): StatementSync {
    let statement = this.#statements.get(text)
    if (!statement) {
      statement = this.#database.prepare(text)
      statement.setReturnArrays(true)
      this.#statements.set(text, statement)
    }
    return statement
  }
}

function keyOf(key: ObjectKey): [string, string, string, string] {
  return [key.cluster, key.resource, key.namespace, key.name]
}

function keyText(key: ObjectKey): string {
  return `"${key.resource}/${key.namespace === '' ? '' : `${key.namespace}/`}${key.name}"`
}

/** SQL for the value without its seal; a value that is not sealed costs no function call. */
const openedSql = `CASE resource WHEN '${sealedResource}' THEN opened(cluster, resource, namespace, name, value) ELSE value END`

function defineOpened(database: DatabaseSync, seal: Seal): void {
  database.function('opened', { deterministic: true }, (cluster, resource, namespace, name, value) => {
    const key = { cluster, resource, namespace, name } as ObjectKey
    return openedValue(seal, key, value as Uint8Array)
  })
}
