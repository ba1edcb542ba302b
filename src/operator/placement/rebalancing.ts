// Balances members from time to time: what should move is noted and visited; the visit decides and writes as for any other move.
import { sleep, type Clock } from '#async/index.ts'
import { namespaceKeyOf } from '#client/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { findRebalances, type Found, type RebalanceSource } from './find-rebalances.ts'
import { observe } from './observe.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { parseWorkloadKey } from './workload-key.ts'

export interface RebalancingOptions {
  readonly log: Logger
  readonly everyMs: number
  readonly clock: Clock
}

/** Runs until the signal aborts, then resolves. */
export async function runRebalancing(
  inputs: PlacementInputs,
  enqueue: (key: string) => void,
  { log, everyMs, clock }: RebalancingOptions,
  signal: AbortSignal,
): Promise<void> {
  const hasEnded = (): boolean => signal.aborted
  while (!hasEnded()) {
    try {
      await sleep(everyMs, signal, { unref: true })
      await rebalance(inputs, enqueue, { log, nowMs: clock.now() }, signal)
    } catch (error) {
      if (!hasEnded()) log.error('could not balance the members', { error })
    }
  }
}

async function rebalance(
  inputs: PlacementInputs,
  enqueue: (key: string) => void,
  { log, nowMs }: { readonly log: Logger; readonly nowMs: number },
  signal: AbortSignal,
): Promise<void> {
  // What was found the last time has not been visited yet.
  if (inputs.rebalancing.size + inputs.dividedAgain.size > 0) return
  const found = ({ key, rebalancing, message }: Found): void => {
    log.info('balances members', { workload: key, message })
    if (rebalancing === undefined) inputs.dividedAgain.set(key, message)
    else inputs.rebalancing.set(key, rebalancing)
    enqueue(key)
  }
  await findRebalances(sourceOf(inputs, nowMs), found, signal)
}

function sourceOf(inputs: PlacementInputs, nowMs: number): RebalanceSource {
  const workloadOf = (key: string): ReturnType<RebalanceSource['workload']> => {
    const ref = parseWorkloadKey(key)
    return ref && inputs.workload(ref)
  }
  return {
    adminPlacements: () => inputs.adminPlacements.store.list(),
    members: () => inputs.members.store.list(),
    isFailoverFrozen: inputs.isFailoverFrozen,
    networkOf: (member) => inputs.networkOf(member),
    requestedIn: (member) => inputs.usage.requestedIn(member, { without: '' }),
    workloadKeysIn: (member) => inputs.workloadKeysIn(member),
    workload: workloadOf,
    observe: (key) => {
      const [ref, workload] = [parseWorkloadKey(key), workloadOf(key)]
      return ref && workload && observe(ref, workload, inputs, nowMs)
    },
    budgetsOf: (key) => {
      const ref = parseWorkloadKey(key)
      return ref === undefined ? [] : inputs.budgetsIn(namespaceKeyOf(ref.objectKey))
    },
    nowMs,
  }
}
