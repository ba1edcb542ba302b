// A volume as a mover sees it: a folder or a block device, and what this process may do to it.
import { readFileSync, statfsSync } from 'node:fs'
import type { Keeps, VolumeStatus } from '#mover/contract/index.ts'
import { MoverError } from '#mover/contract/index.ts'
import { closeFd, openFlags, openPath, sizeOf } from './libc.ts'

export interface Volume extends Disposable {
  readonly kind: 'directory' | 'block'
  /** Descriptor of the folder or of the device. */
  readonly fd: number
  readonly path: string
  /** Bytes of a device; 0 for a folder. */
  readonly size: number
}

/** Opens the volume. Throws MoverError if it is not there, or not of this kind. */
export function openVolume(path: string, { block = false, write = false } = {}): Volume {
  const flags = block ? (write ? openFlags.readWrite : openFlags.read) : openFlags.directory
  let fd: number
  try {
    fd = openPath(path, flags)
  } catch (cause) {
    const what = block ? 'block device' : 'folder'
    throw new MoverError(write ? 'TargetUnwritable' : 'SourceUnreadable', `no ${what} at ${path}: ${String(cause)}`, {
      cause,
    })
  }
  const size = block ? sizeOf(fd) : 0
  return { kind: block ? 'block' : 'directory', fd, path, size, [Symbol.dispose]: () => closeFd(fd) }
}

export function volumeStatus(volume: Volume): VolumeStatus {
  if (volume.kind === 'block') return { kind: 'block', totalBytes: volume.size, freeBytes: 0 }
  const { bsize, blocks, bavail, files, ffree } = statfsSync(`/proc/self/fd/${volume.fd}`)
  const sizes = { totalBytes: blocks * bsize, freeBytes: bavail * bsize }
  return { kind: 'directory', ...sizes, ...(files > 0 && { freeEntries: ffree }) }
}

const capabilityBits = { chown: 0, dacOverride: 1, fowner: 3, sysAdmin: 21, mknod: 27, setfcap: 31 } as const

/** What this process can keep, from its effective capabilities. */
export function keepsOf(status = readFileSync('/proc/self/status', 'latin1')): Keeps {
  const effective = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? '0'}`)
  const has = (bit: number): boolean => ((effective >> BigInt(bit)) & 1n) === 1n
  return {
    owners: has(capabilityBits.chown),
    foreignFiles: has(capabilityBits.fowner) && has(capabilityBits.dacOverride),
    capabilities: has(capabilityBits.setfcap),
    devices: has(capabilityBits.mknod),
    trustedAttributes: has(capabilityBits.sysAdmin),
  }
}
