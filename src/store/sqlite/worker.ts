// The thread that owns the database. It takes a batch of calls, does all writes in one transaction and responds after
// the commit, so that all callers share one flush to disk.
import { parentPort, workerData } from 'node:worker_threads'
import { DiskRoom } from './disk-room.ts'
import { LogMover, openDatabase, type OpenDatabase, OwnFiles } from './open-database.ts'
import { DatabaseRefused } from './sealed-values.ts'
import {
  Packer,
  type DatabaseAnswer,
  type DatabaseCall,
  type FromWorker,
  type ToWorker,
  type Values,
  type WorkerSettings,
  type WriteCall,
} from './protocol.ts'
import { Tables } from './tables.ts'

const port = parentPort
if (!port) throw new Error('this file runs as a worker thread')
const settings = workerData as WorkerSettings

function send(message: FromWorker, transfer: ArrayBuffer[] = []): void {
  port?.postMessage(message, transfer)
}

function isWrite(call: DatabaseCall): call is WriteCall {
  return call.do === 'create' || call.do === 'update' || isDeletion(call)
}

function isPut(call: DatabaseCall): boolean {
  return call.do === 'create' || call.do === 'update'
}

function isDeletion(call: DatabaseCall): call is Extract<WriteCall, { do: 'delete' | 'deleteSome' }> {
  return call.do === 'delete' || call.do === 'deleteSome'
}

/** Calls that arrived together, with the responses that are known so far. */
interface Batch {
  readonly calls: readonly DatabaseCall[]
  readonly values: Values
  readonly packer: Packer
  readonly answers: DatabaseAnswer[]
}

/** Sets the responses of all writes. If the transaction fails, all writes get the same error, because none was done. */
function doWrites({ tables, room }: Opened, batch: Batch): void {
  const { calls, values, answers } = batch
  if (!calls.some(isWrite)) return
  const full = calls.some(isPut) && !room.has(values.reduce((sum, { byteLength }) => sum + byteLength, 0))
  const failed = full ? undefined : transact(tables, batch, isWrite)
  if (!full && failed?.code !== 'Full') return
  for (const [i, call] of calls.entries()) if (full && isWrite(call)) answers[i] = noRoom
  // A full disk must still accept deletions, or it would stay full.
  transact(tables, batch, isDeletion)
  room.shrinkLog()
}

function transact(
  tables: Tables,
  { calls, values, packer, answers }: Batch,
  which: (call: DatabaseCall) => call is WriteCall,
): Extract<DatabaseAnswer, { is: 'error' }> | undefined {
  if (!calls.some(which)) return undefined
  try {
    tables.begin()
    if (which === isDeletion) tables.forgetDeletions()
    calls.forEach((call, i) => {
      if (which(call)) answers[i] = tables.write(call, values, packer)
    })
    tables.commit()
    return undefined
  } catch (error) {
    tables.rollback()
    const failed = failure(error)
    calls.forEach((call, i) => {
      if (which(call)) answers[i] = failed
    })
    return failed
  }
}

const filesMovedText =
  'was moved, removed or replaced while it was in use: nothing more is written; put it back with its -wal file and start again'

const noRoom = { is: 'error', code: 'Full', message: 'the disk is full' } as const

function failure(error: unknown): Extract<DatabaseAnswer, { is: 'error' }> {
  const { errcode, message } = error as { errcode?: number; message: string }
  const full = ((errcode ?? 0) & 0xff) === 13
  return full
    ? { is: 'error', code: 'Full', message: `the disk or the allowed size of the database is full: ${message}` }
    : { is: 'error', code: 'Unavailable', message: `the database failed: ${message}` }
}

interface Opened {
  readonly tables: Tables
  readonly room: DiskRoom
  readonly files: OwnFiles
}

/** Runs the calls and sends their responses. Returns false, without responses, if the database's files are gone. */
function answer(opened: Opened, calls: readonly DatabaseCall[], values: Values): boolean {
  const { tables, files } = opened
  const packer = new Packer()
  const answers: DatabaseAnswer[] = []
  doWrites(opened, { calls, values, packer, answers })
  if (calls.some(isWrite) && !files.areThere()) return false
  // Reads run after the commit: they see only data on disk.
  calls.forEach((call, i) => {
    if (isWrite(call)) return
    try {
      answers[i] = tables.read(call, packer)
    } catch (error) {
      answers[i] = failure(error)
    }
  })
  const packed = packer.finish()
  send({ type: 'answers', answers, values: packed }, packed)
  return true
}

function open(): OpenDatabase | undefined {
  try {
    return openDatabase(settings.file, settings)
  } catch (error) {
    if (!(error instanceof DatabaseRefused)) throw error
    send({ type: 'refused', message: error.message })
    return undefined
  }
}

const opened = open()
if (opened) {
  const tables = new Tables(opened.database, settings.keptDeletions, opened.seal)
  const room = new DiskRoom(opened.database, settings.file)
  const log = new LogMover(opened.database)
  const files = new OwnFiles(settings.file)
  port.on('message', (message: ToWorker) => {
    if (message === null) {
      opened.close()
      port.close()
      return
    }
    if (answer({ tables, room, files }, message.calls, message.values)) {
      log.moveIfLong()
      return
    }
    // Does not close the database: that could touch foreign files in its place.
    send({ type: 'lost', message: `"${settings.file}" ${filesMovedText}` })
    port.close()
  })
  send({ type: 'ready', instanceId: opened.instanceId, revision: tables.revision })
}
