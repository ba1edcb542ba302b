// A run: everything that one test process (or one `make clusters-up`) has on this machine, under one id.

import { randomInt } from 'node:crypto'
import { readFileSync, rmSync } from 'node:fs'
import { slotCidr, slotCount, overlaps } from './address-plan.ts'
import { withFileLock } from './file-lock.ts'
import { bootId, identifyProcess, signalProcess } from './process-identity.ts'
import { type Resource } from './resource.ts'
import {
  isAbandoned,
  livingProcesses,
  readRecords,
  runDir,
  runsLock,
  undoRecord,
  writeRecord,
  type RunRecord,
} from './run-record.ts'

export class Run implements AsyncDisposable {
  readonly record: RunRecord
  #holds = 0
  #stopping: Promise<void> | undefined

  constructor(record: RunRecord) {
    this.record = record
  }

  get id(): string {
    return this.record.id
  }

  /** The folder of the run, removed with it. */
  get dir(): string {
    return runDir(this.id)
  }

  get stopped(): boolean {
    return this.#stopping !== undefined
  }

  /** Records a resource that is about to be created. */
  add(resource: Resource): void {
    this.record.resources.push(resource)
    writeRecord(this.record)
  }

  /** Removes a resource that no longer exists from the record. */
  forget(resource: Resource): void {
    const index = this.record.resources.indexOf(resource)
    if (index < 0) return
    this.record.resources.splice(index, 1)
    writeRecord(this.record)
  }

  /** Keeps the run until released. The last release ends the run and removes its networks and folders. */
  hold(): () => Promise<void> {
    let held = true
    this.#holds++
    return async () => {
      if (!held) return
      held = false
      if (--this.#holds === 0) await this.stop()
    }
  }

  /** Undoes what was created under `scope`, last created first. */
  async undo(scope: string): Promise<void> {
    this.record.clusters = this.record.clusters.filter(({ name }) => name !== scope)
    await undoRecord(this.record, { scope, forget: (resource) => this.forget(resource) })
  }

  /** Ends the whole run. May be called twice. */
  stop(): Promise<void> {
    this.#stopping ??= endRun(this.record)
    return this.#stopping
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.stop()
  }

  /**
   * For the exit of our process, where nothing can be awaited: kills all processes and leaves the rest to the next
   * sweep.
   */
  killNow(): void {
    if (this.stopped) return
    for (const identity of livingProcesses(this.record)) signalProcess(identity, 'SIGKILL')
  }
}

export interface NewRunOptions {
  /** For runs that a person keeps longer than the process that creates them. */
  keepAs?: string
  signal?: AbortSignal | undefined
  log?: (line: string) => void
}

/** Creates a run with an id and addresses of its own, after sweeping the runs whose owner is dead. */
export async function newRun({ keepAs, signal, log }: NewRunOptions = {}): Promise<Run> {
  const owner = identifyProcess(process.pid)
  if (owner === undefined) throw new Error(`could not read the identity of our own process ${process.pid}`)
  return withFileLock(
    runsLock(),
    async () => {
      await sweepLocked(log)
      const id = Array.from({ length: 6 }, () => '0123456789abcdefghijklmnopqrstuvwxyz'[randomInt(36)]).join('')
      const record: RunRecord = {
        id,
        bootId: bootId(),
        ...(keepAs === undefined ? { owner } : { name: keepAs }),
        slot: freeSlot(readRecords()),
        createdAt: new Date().toISOString(),
        clusters: [],
        resources: [],
      }
      writeRecord(record)
      return new Run(record)
    },
    { signal },
  )
}

/** Ends the runs whose owner process is dead. Resolves with their ids. */
export async function sweepRuns({ signal, log }: { signal?: AbortSignal; log?: (line: string) => void } = {}): Promise<
  string[]
> {
  return withFileLock(runsLock(), () => sweepLocked(log), { signal })
}

let current: Promise<Run> | undefined

/** The run of this process, created on first use, with a hold that the caller releases. */
export async function acquireRun(options: NewRunOptions = {}): Promise<{ run: Run; release: () => Promise<void> }> {
  for (;;) {
    current ??= newRun(options).then(endWithProcess)
    const asked = current
    // Dropped only if it is still the current one: another caller may have begun the next run meanwhile.
    const drop = (): void => {
      if (current === asked) current = undefined
    }
    const run = await asked.catch((error: unknown) => {
      drop()
      throw error
    })
    if (!run.stopped) return { run, release: run.hold() }
    await run.stop()
    drop()
  }
}

const runsOfProcess = new Set<Run>()

function endWithProcess(run: Run): Run {
  watchOwnExit()
  for (const other of runsOfProcess) if (other.stopped) runsOfProcess.delete(other)
  runsOfProcess.add(run)
  return run
}

let watching = false

function watchOwnExit(): void {
  if (watching) return
  watching = true
  process.once('exit', () => {
    for (const run of runsOfProcess) run.killNow()
  })
  for (const [name, code] of [
    ['SIGTERM', 143],
    ['SIGHUP', 129],
    ['SIGINT', 130],
  ] as const) {
    // Without a listener, a signal ends the process before the exit handlers run. An existing listener (mocha's)
    // decides.
    if (process.listenerCount(name) === 0) process.once(name, () => process.exit(code))
  }
}

async function sweepLocked(
  log: (line: string) => void = (line) => void process.stderr.write(`${line}\n`),
): Promise<string[]> {
  const abandoned = readRecords().filter(isAbandoned)
  for (const record of abandoned) {
    log(`cleaning up after run ${record.id}, whose process is gone ...`)
    await endRun(record)
  }
  return abandoned.map(({ id }) => id)
}

/** Ends a run from its record alone, whichever process created it. */
export async function endRun(record: RunRecord): Promise<void> {
  await undoRecord(record, { forget: () => undefined })
  rmSync(runDir(record.id), { recursive: true, force: true })
}

function freeSlot(records: readonly RunRecord[]): number {
  const taken = new Set(records.map(({ slot }) => slot))
  const routed = routedNetworks()
  for (let slot = 0; slot < slotCount; slot++) {
    if (!taken.has(slot) && !routed.some((network) => overlaps(network, slotCidr(slot)))) return slot
  }
  throw new Error(`all ${slotCount} address slots are taken, by other runs or by routes of this machine`)
}

/** Networks to which this machine has routes, except the default route. */
function routedNetworks(): string[] {
  const address = (hex: string): string => Buffer.from(hex, 'hex').reverse().join('.')
  return readFileSync('/proc/net/route', 'utf8')
    .split('\n')
    .slice(1)
    .map((line) => line.split('\t'))
    .flatMap(([, destination, , , , , , mask]) => {
      if (destination === undefined || mask === undefined || mask === '00000000') return []
      const bits = parseInt(Buffer.from(mask, 'hex').reverse().toString('hex'), 16)
        .toString(2)
        .replaceAll('0', '').length
      return [`${address(destination)}/${bits}`]
    })
}
