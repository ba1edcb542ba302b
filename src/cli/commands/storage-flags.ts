// The flags of what logical clusters may keep, the same wherever they are kept.
import { InvalidArgumentError, Option, type Command } from 'commander'
import { parseCount } from './parse-count.ts'

/** As commander gives them. */
export interface StorageFlags {
  readonly storagePerCluster: number
  readonly eventTtl: number
}

/** What an option of the roles says of it. */
interface StorageOptions {
  /** What one logical cluster may keep, in bytes; absent: no bound. */
  readonly storageBytes?: number
  /** How long an Event stays after it was last written. */
  readonly eventTtlMs?: number
}

/** Adds `--storage-per-cluster` and `--event-ttl`. */
export function withStorageFlags(command: Command): Command {
  return command
    .option(
      '--storage-per-cluster <MiB>',
      'what one logical cluster may keep, with half a KiB for each object; beyond it creations are refused (403) and ' +
        'the rest goes on; 0: no bound',
      parseCount,
      1024,
    )
    .addOption(
      new Option('--event-ttl <duration>', 'how long an Event stays after it was last written: 1h, 90m, 1h30m, 45s')
        .argParser(parseDuration)
        .default(60 * 60_000, '1h'),
    )
}

/** What the flags say. */
export function storageOf({ storagePerCluster, eventTtl }: StorageFlags): StorageOptions {
  const bound = storagePerCluster === 0 ? {} : { storageBytes: storagePerCluster * 1024 * 1024 }
  return { ...bound, eventTtlMs: eventTtl }
}

const maxMs = 30 * 24 * 60 * 60_000

/** Milliseconds of a duration as flags of Kubernetes take it. Throws InvalidArgumentError. */
function parseDuration(text: string): number {
  const [, hours = '0', minutes = '0', seconds = '0'] = /^(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?$/.exec(text) ?? []
  const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000
  if (ms === 0 || ms > maxMs) throw new InvalidArgumentError('it is a duration above zero, at most 720h: 1h30m, 45s')
  return ms
}
