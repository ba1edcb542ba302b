// The contract between the operator and `kcp mover`: what a volume holds, the rounds of a copy, their progress and
// their results. All of it is JSON on the wire.

/** The side of a mover. */
export type MoverRole = 'source' | 'target'

/** The parties of a move. Each has a certificate of its own. */
export const parties = ['control', 'source', 'target'] as const
export type Party = (typeof parties)[number]

/** Version of the protocols between control, source and target; both movers and control must have the same one. */
export const protocolVersion = 2

/** What a mover can keep with the rights of its process. `false`: the loss is named in surveys and results. */
export interface Keeps {
  /** User and group ids (CHOWN). */
  readonly owners: boolean
  /** Modes, times and attributes of files of other users (FOWNER), and their content (DAC_OVERRIDE). */
  readonly foreignFiles: boolean
  /** `security.capability` (SETFCAP). */
  readonly capabilities: boolean
  /** Device nodes (MKNOD). */
  readonly devices: boolean
  /** Extended attributes in `trusted.` (SYS_ADMIN). */
  readonly trustedAttributes: boolean
}

export interface MoverStatus {
  readonly role: MoverRole
  /** Name of the move, from the mover's certificate. */
  readonly move: string
  readonly version: string
  readonly protocol: number
  readonly volume: VolumeStatus
  readonly keeps: Keeps
  /** The round or survey that runs now. */
  readonly running?: 'survey' | RoundMode
  /** Progress of the round that runs now. */
  readonly progress?: RoundProgress
}

export interface VolumeStatus {
  readonly kind: 'directory' | 'block'
  /** Size of the file system or of the device. */
  readonly totalBytes: number
  /** Bytes that are free for this process; 0 for a device. */
  readonly freeBytes: number
  /** Free inodes; absent where the file system has no fixed number. */
  readonly freeEntries?: number
}

export interface EntryCounts {
  readonly directories: number
  readonly files: number
  /** Names beyond the first one of an inode. */
  readonly hardLinks: number
  readonly symlinks: number
  readonly fifos: number
  readonly sockets: number
  readonly devices: number
}

/** The reason why something of an entry is not kept. */
export type NotKeptReason =
  | 'owner'
  | 'mode'
  | 'times'
  | 'attribute'
  | 'device'
  | 'immutable'
  | 'encryption'
  | 'other file system'
  | 'unreadable'
  | 'too deep'
  | 'hard link'

export interface NotKeptEntry {
  /** Path below the volume, with bytes that are no printable UTF-8 as `\xNN`; at most 1,024 characters. */
  readonly path: string
  readonly reason: NotKeptReason
  /** More about it, such as the name of the attribute. */
  readonly detail?: string
}

/** What cannot be kept: at most 100 entries by name, and how many there are. */
export interface NotKept {
  readonly count: number
  readonly named: readonly NotKeptEntry[]
}

export interface Survey {
  readonly kind: 'directory' | 'block'
  readonly entries: EntryCounts
  /** Sum of the sizes of all files, each inode once; the size of a device. */
  readonly bytes: number
  /** Bytes that the volume stores for them. */
  readonly allocatedBytes: number
  /** Bytes in holes of files. */
  readonly sparseBytes: number
  readonly largestFile?: { readonly path: string; readonly bytes: number }
  /** Nothing but `lost+found`. */
  readonly isEmpty: boolean
  readonly notKept: NotKept
}

export interface SurveyProgress {
  readonly entries: number
  readonly bytes: number
}

export type RoundMode = 'copy' | 'final'

export interface RoundOptions {
  /**
   * `copy`: while the application runs; files that vanish or change are no failure. `final`: the application has
   * stopped; copies, flushes to disk, and compares content and metadata of both sides completely.
   */
  readonly mode: RoundMode
  /** Where the target reaches the source: an address, or through connections that control opens with `relay`. */
  readonly source: { readonly address: string } | { readonly relay: true }
  /** Bytes per second that the round may send in each direction; absent: no bound. */
  readonly bandwidth?: number
  /** Accept a source without entries though the target has some: all of them are deleted. */
  readonly allowEmpty?: boolean
  /** Fail with CannotKeep if something is not kept. */
  readonly requireAll?: boolean
}

export interface RoundProgress {
  /** A final round copies what differs while it compares. */
  readonly phase: 'connecting' | 'copying' | 'flushing' | 'comparing'
  readonly entriesDone: number
  /** From the source's last survey or round; absent before. The real number may differ. */
  readonly entriesTotal?: number
  /** Bytes of files that are equal or were copied. */
  readonly bytesDone: number
  readonly bytesTotal?: number
  /** Bytes of content that were written. */
  readonly bytesChanged: number
  /** Bytes of both directions between the movers. */
  readonly bytesOnWire: number
  /** Bytes done per second, over the last ten seconds. */
  readonly bytesPerSecond: number
}

export interface RoundResult {
  readonly mode: RoundMode
  readonly durationMs: number
  readonly entries: number
  readonly bytes: number
  readonly created: number
  /** Files with changed content. */
  readonly updated: number
  readonly deleted: number
  readonly bytesChanged: number
  readonly bytesOnWire: number
  /** Files that changed or vanished while they were copied; only in `copy`. */
  readonly unsettled: number
  readonly notKept: NotKept
  /** Only of final rounds: both sides were compared completely, and are equal but for `notKept`. */
  readonly verified?: true
  /** Only of final rounds: SHA-256 over all entries with metadata and content, in an order of no meaning. */
  readonly digest?: string
}

/** A line of the response to `POST /survey`. */
export type SurveyLine =
  { readonly progress: SurveyProgress } | { readonly result: Survey } | { readonly error: MoverErrorBody }

/** A line of the response to `POST /rounds`. */
export type RoundLine =
  { readonly progress: RoundProgress } | { readonly result: RoundResult } | { readonly error: MoverErrorBody }

export interface MoverErrorBody {
  readonly code: string
  readonly message: string
  readonly path?: string
}
