// The flags of what logical clusters may keep, the same wherever they are kept.
import type { Command } from 'commander'
import { parseCount } from './parse-count.ts'

/** As commander gives them. */
export interface StorageFlags {
  readonly storagePerCluster: number
}

/** Adds `--storage-per-cluster`. */
export function withStorageFlags(command: Command): Command {
  return command.option(
    '--storage-per-cluster <MiB>',
    'what one logical cluster may keep, with half a KiB for each object; beyond it creations are refused (403) and the ' +
      'rest goes on; 0: no bound',
    parseCount,
    1024,
  )
}

/** What the flags say, in bytes. */
export function storageOf({ storagePerCluster }: StorageFlags): { storageBytes?: number } {
  return storagePerCluster === 0 ? {} : { storageBytes: storagePerCluster * 1024 * 1024 }
}
