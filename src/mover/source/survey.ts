// Counts what a volume has, and names what a copy cannot keep.
import type { EntryCounts, Survey, SurveyProgress } from '#mover/contract/index.ts'
import { Losses } from '#mover/files/losses.ts'
import { readAttributes, statFlags, type Stat } from '#mover/files/metadata.ts'
import { walk, type Visit } from '#mover/files/walk.ts'
import type { Volume } from '#mover/files/volume.ts'
import { maxDepth, maxPathBytes, printable } from '#mover/wire/entries.ts'
import { TimeSlices } from '#mover/files/time-slices.ts'

type Mutable<T> = { -readonly [K in keyof T]: T[K] }

export interface SurveyOptions {
  readonly onProgress: (progress: SurveyProgress) => void
  readonly signal: AbortSignal
}

/** Surveys the volume. Rejects with the signal's reason, or SystemError if the volume cannot be read. */
export async function surveyVolume(volume: Volume, { onProgress, signal }: SurveyOptions): Promise<Survey> {
  const survey = new RunningSurvey(volume)
  if (volume.kind === 'block') return survey.result
  const slices = new TimeSlices()
  const steps = walk(volume.fd, {
    maxDepth,
    maxPathBytes,
    onSkipped: (path, reason) => survey.losses.add(printable(path), reason),
  })
  for (const step of steps) {
    if ('entry' in step) survey.add(step.entry)
    if (slices.isOver()) {
      await slices.rest()
      signal.throwIfAborted()
      onProgress(survey.progress)
    }
  }
  return survey.result
}

class RunningSurvey {
  readonly losses = new Losses()
  readonly #volume: Volume
  readonly #counts: Mutable<EntryCounts> = {
    directories: 0,
    files: 0,
    hardLinks: 0,
    symlinks: 0,
    fifos: 0,
    sockets: 0,
    devices: 0,
  }
  readonly #links = new LinkTable()
  #bytes = 0
  #allocated = 0
  #sparse = 0
  #largest: { path: string; bytes: number } | undefined
  #entries = 0

  constructor(volume: Volume) {
    this.#volume = volume
  }

  get progress(): SurveyProgress {
    return { entries: this.#entries, bytes: this.#bytes }
  }

  get result(): Survey {
    const { kind, size } = this.#volume
    const isBlock = kind === 'block'
    return {
      kind,
      entries: this.#counts,
      bytes: isBlock ? size : this.#bytes,
      allocatedBytes: isBlock ? size : this.#allocated,
      sparseBytes: this.#sparse,
      ...(this.#largest && { largestFile: this.#largest }),
      isEmpty: !isBlock && this.#entries <= 1,
      notKept: this.losses.list,
    }
  }

  add(visit: Visit): void {
    const { stat, folder, name } = visit
    this.#entries++
    const isFurtherName = stat.links > 1 && stat.kind !== 'directory' && !this.#links.see(stat).isFirst
    if (isFurtherName) this.#counts.hardLinks++
    else this.#count(visit)
    this.#allocated += isFurtherName ? 0 : stat.allocated
    for (const flag of ['immutable', 'append'] as const)
      if ((stat.flags & statFlags[flag]) !== 0) this.losses.add(printable(visit.path()), 'immutable', flag)
    for (const flag of ['encrypted', 'verity'] as const)
      if ((stat.flags & statFlags[flag]) !== 0) this.losses.add(printable(visit.path()), 'encryption', flag)
    const { left } = readAttributes(visit.depth === 0 ? { folder } : { folder, name })
    for (const attribute of left) this.losses.add(printable(visit.path()), 'attribute', attribute)
  }

  #count({ stat, path }: Visit): void {
    const { kind, size, allocated } = stat
    if (kind === 'directory') this.#counts.directories++
    else if (kind === 'file') {
      this.#counts.files++
      this.#bytes += size
      this.#sparse += Math.max(0, size - allocated)
      if (size > (this.#largest?.bytes ?? -1)) this.#largest = { path: printable(path()), bytes: size }
    } else if (kind === 'symlink') this.#counts.symlinks++
    else if (kind === 'fifo') this.#counts.fifos++
    else if (kind === 'socket') this.#counts.sockets++
    else this.#counts.devices++
  }
}

/** Inodes with several names, of which not all were seen. */
export class LinkTable {
  readonly #open = new Map<string, { readonly link: number; left: number }>()
  #last = 0

  get size(): number {
    return this.#open.size
  }

  see({ fileSystem, inode, links }: Stat): {
    readonly link: number
    readonly isFirst: boolean
    readonly isLast: boolean
  } {
    const key = fileSystem + inode
    const known = this.#open.get(key)
    if (known === undefined) {
      const link = ++this.#last
      this.#open.set(key, { link, left: links - 1 })
      return { link, isFirst: true, isLast: false }
    }
    known.left--
    const isLast = known.left <= 0
    if (isLast) this.#open.delete(key)
    return { link: known.link, isFirst: false, isLast }
  }
}
