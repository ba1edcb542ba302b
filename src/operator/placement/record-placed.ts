// What workloads of each logical cluster request in members: status.usage where there are limits, and rows for bills.
import type { Amounts } from '#apimachinery/quantity/index.ts'
import { clusterIdOf } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { sleep, type Clock } from '#async/index.ts'
import type { KubeClient } from '#client/index.ts'
import {
  amountOfUsage,
  isUsageStep,
  logicalClusters,
  partsByHour,
  placedLimits,
  UsageBook,
  type UsageHistory,
} from '#crds/index.ts'
import type { Logger } from '#telemetry/index.ts'
import type { PlacementInputs } from './placement-inputs.ts'

export interface PlacedRecordOptions {
  /** The API with the LogicalClusters. */
  readonly client: KubeClient
  /** Absent: no rows are kept. */
  readonly history?: UsageHistory | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** How often usage is counted, and how often rows are saved. */
const [everyMs, savedEveryMs] = [10_000, 60_000]
/** How many statuses are written each time: the others follow. */
const mostWrites = 50

/** Counts until the signal aborts. */
export async function recordPlaced(
  inputs: PlacementInputs,
  { client, history, clock, log }: PlacedRecordOptions,
  signal: AbortSignal,
): Promise<void> {
  const book = history && new UsageBook(history)
  let countedAt = clock.now()
  let savedAt = countedAt
  const isOver = (): boolean => signal.aborted
  while (!isOver()) {
    await sleep(everyMs, signal, { unref: true }).catch(() => undefined)
    const life = isOver() ? AbortSignal.timeout(lastCountMs) : signal
    try {
      const now = clock.now()
      if (book !== undefined) {
        for (const { atMs, seconds } of partsByHour(countedAt, now)) {
          await book.open(atMs, life)
          count(inputs, book, seconds)
          countedAt = atMs + seconds * 1000
        }
        if (now - savedAt >= savedEveryMs || isOver()) {
          savedAt = now
          await book.save(life)
        }
      }
      if (!isOver()) await publish(inputs, client, signal)
    } catch (error) {
      if (!isOver()) log.warn('what logical clusters request in members was not saved; will be tried again', { error })
    }
  }
}

/** How long the last count may take while the process ends, milliseconds. */
const lastCountMs = 2000

function count(inputs: PlacementInputs, book: UsageBook, seconds: number): void {
  for (const { name, uid, amounts } of requestedByClusters(inputs))
    book.add({
      id: clusterIdOf(uid),
      name,
      cpuSeconds: amounts.cpu * seconds,
      memoryByteSeconds: amounts.memory * seconds,
      podSeconds: amounts.pods * seconds,
    })
}

/** What placed workloads of each logical cluster request: CPUs, bytes, pods. */
export function* requestedByClusters(inputs: PlacementInputs) {
  for (const name of inputs.usage.clusters) {
    const uid = inputs.clusters.store.get(name)?.metadata.uid
    if (uid === undefined) continue
    const requested = inputs.usage.requestedBy(name)
    const [cpu, memory] = [numberOf(requested, 'cpu'), numberOf(requested, 'memory')]
    yield { name, uid, amounts: { cpu, memory, pods: numberOf(requested, 'pods') } }
  }
}

function numberOf(amounts: Amounts, name: string): number {
  return Number(amounts.get(name)?.nanos ?? 0n) / 1e9
}

/** Writes status.usage of the logical clusters with limits where it has changed enough. */
async function publish(inputs: PlacementInputs, client: KubeClient, signal: AbortSignal): Promise<void> {
  let writes = 0
  for (const name of inputs.placedLimits.limited) {
    const cluster = inputs.clusters.store.get(name)
    if (cluster === undefined || cluster.metadata.deletionTimestamp !== undefined) continue
    const { limits, ...rest } = { limits: cluster.spec?.limits, usage: cluster.status?.usage }
    const usage = Object.fromEntries(
      placedLimits.flatMap((limit) => {
        if (limits?.[limit] === undefined) return []
        const now = inputs.placedLimits.usedOf(name, limit)
        const [before, most] = [amountOfUsage(rest.usage?.[limit]), amountOfUsage(limits[limit])]
        if (!isUsageStep(before, amountOfUsage(now) ?? 0, most)) return []
        return [[limit, limit === 'pods' ? Number(now) : now]]
      }),
    )
    if (Object.keys(usage).length === 0) continue
    if (writes++ >= mostWrites) return
    const { uid } = cluster.metadata
    const patch = { metadata: { uid }, status: { usage } }
    try {
      await client.patch(logicalClusters, { name }, 'merge', patch, { subresource: 'status', signal })
    } catch (error) {
      // Deleted, or created again under its name.
      if (!isStatusError(error) || (error.code !== 404 && error.code !== 409)) throw error
    }
  }
}
