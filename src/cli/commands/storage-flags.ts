// The flags for storage limits of logical clusters, shared by all commands that keep them.
import { InvalidArgumentError, Option, type Command } from 'commander'
import { containerMemory } from '#telemetry/index.ts'
import { parseCount } from './parse-count.ts'

/** The flag values as commander passes them. */
export interface StorageFlags {
  readonly storagePerCluster: number
  readonly eventTtl: number
}

/** The same values as options of the roles. */
interface StorageOptions {
  /** How much one logical cluster may keep, in bytes; absent: no limit. */
  readonly storageBytes?: number
  /** How long an Event is kept after it was last written, milliseconds. */
  readonly eventTtlMs?: number
}

/** Adds `--storage-per-cluster` and `--event-ttl`. */
export function withStorageFlags(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--storage-per-cluster <MiB>',
        'how much one logical cluster may store, where an object counts half a KiB more than its size; above it creations ' +
          'are refused (403) and other requests still work; 0: no limit',
      )
        .argParser(parseCount)
        .default(defaultPerCluster(), '1024, at most half the memory of the container'),
    )
    .addOption(
      new Option('--event-ttl <duration>', 'how long an Event is kept after it was last written: 1h, 90m, 1h30m, 45s')
        .argParser(parseDuration)
        .default(60 * 60_000, '1h'),
    )
}

/** What a logical cluster keeps is in memory while it is used. */
function defaultPerCluster(): number {
  return Math.min(1024, Math.floor(containerMemory() / 2 / 1024 / 1024))
}

/** Converts the flag values to options. */
export function storageOf({ storagePerCluster, eventTtl }: StorageFlags): StorageOptions {
  const bound = storagePerCluster === 0 ? {} : { storageBytes: storagePerCluster * 1024 * 1024 }
  return { ...bound, eventTtlMs: eventTtl }
}

const maxMs = 30 * 24 * 60 * 60_000

/** Parses a duration as Kubernetes' flags write it; milliseconds. Throws InvalidArgumentError. */
function parseDuration(text: string): number {
  const [, hours = '0', minutes = '0', seconds = '0'] = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text) ?? []
  const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000
  if (ms === 0 || ms > maxMs)
    throw new InvalidArgumentError('it must be a duration above zero, at most 720h: 1h30m, 45s')
  return ms
}
