// The memory that this process may use, by the limit of its container.
import { totalmem } from 'node:os'
import { getHeapStatistics } from 'node:v8'

const MiB = 1024 * 1024

/** The variable with the number of processes that share the container: `kcp apiserver --workers` sets it. */
export const processesVariable = 'KCP_PROCESSES'

/** This process's share of the limit of the container, bytes; Infinity without a limit. */
export function containerMemory(): number {
  const processes = Math.max(1, Number(process.env[processesVariable] ?? 1) || 1)
  return containerLimit() / processes
}

/** The limit of the container, which several processes may share, bytes; Infinity without a limit. */
export function containerLimit(): number {
  // 0 or a huge number without a limit.
  const limit = process.constrainedMemory()
  return limit > 0 && limit < totalmem() ? limit : Infinity
}

/**
 * The part of V8's heap limit that is for old objects, bytes. V8 of each process sizes the young generation by the whole
 * container, also where several share it.
 */
export function oldGenerationLimit(): number {
  const { heap_size_limit: limit } = getHeapStatistics()
  return Math.max(limit - youngGenerationLimit(Math.min(containerLimit(), totalmem())), limit / 4)
}

/**
 * The part of V8's heap limit that is for new objects alone, bytes: three semi-spaces, whose size V8 takes from the
 * memory of the container or the machine (Node 24): 1 MiB up to 512 MiB of memory, else the next power of two above a
 * 64th of it, at most 64 MiB.
 */
export function youngGenerationLimit(memoryBytes: number): number {
  if (memoryBytes <= 512 * MiB) return 3 * MiB
  return 3 * Math.min(64, 2 ** Math.ceil(Math.log2(memoryBytes / 64 / MiB))) * MiB
}
