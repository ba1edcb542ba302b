// The controller of SnapshotStores: says whether snapshots can be stored there, before the first one is.
import { systemClock, timestamp } from '#async/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import { setCondition, snapshotStores, type ConditionUpdate, type SnapshotStore } from '#crds/index.ts'
import { runLoop } from '#operator/framework/loop.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent } from '#operator/framework/record-event.ts'
import { openStore, StoreProblem } from '#operator/snapshot-stores/open-store.ts'
import type { ReconcileResult } from '#reconcile/index.ts'
import { isStorageError } from '#snapshot/index.ts'

/** Seconds between two looks at a store: a bucket or a Secret can vanish without a word. */
const againSeconds = { ready: 300, failed: 30 } as const

/** Checks stores. */
export function snapshotStoresController(): OperatorController {
  return {
    name: 'snapshot-stores',
    async run(context, { signal, started }) {
      const stores = context.informers.of<SnapshotStore>(snapshotStores)
      started()
      await runLoop(
        {
          name: 'snapshot-stores',
          workers: 2,
          informers: [stores],
          fairnessKey: (name) => name,
          follow: (add) => [
            stores.onChange(({ key, before, after }) => {
              if (after !== undefined && before?.metadata.generation !== after.metadata.generation) add(key)
            }),
          ],
          reconcile: async (name, life) => {
            const store = stores.store.get(name)
            return store === undefined || store.metadata.deletionTimestamp !== undefined
              ? {}
              : await check(store, context, life)
          },
        },
        context,
        signal,
      )
    },
  }
}

async function check(
  store: DeepReadonly<SnapshotStore>,
  context: OperatorContext,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { clusters, log } = context
  const { name, generation = 0 } = store.metadata
  const update = await outcome(store, context, signal)
  const now = timestamp(systemClock.now())
  const before = store.status?.conditions
  const conditions = setCondition(before, { ...update, observedGeneration: generation }, now)
  if (conditions !== before) {
    const status = { observedGeneration: generation, conditions }
    await clusters.patch(snapshotStores, { name }, 'merge', { status }, { subresource: 'status', signal })
    const { reason, message } = update
    const was = before?.find(({ type }) => type === 'Ready')
    if (was?.reason !== reason || was.message !== message) {
      const type = update.status === 'True' ? 'Normal' : 'Warning'
      await recordEvent(
        store,
        { type, reason, message },
        { client: clusters, component: 'kcp-snapshots', now, log },
        signal,
      )
    }
  }
  return { requeueAfterSeconds: update.status === 'True' ? againSeconds.ready : againSeconds.failed }
}

async function outcome(
  store: DeepReadonly<SnapshotStore>,
  { clusters, snapshotDirectory: directory }: OperatorContext,
  signal: AbortSignal,
): Promise<ConditionUpdate> {
  try {
    await using storage = await openStore(store, { clusters, ...(directory !== undefined && { directory }) }, signal)
    await storage.check(signal)
    return { type: 'Ready', status: 'True', reason: 'Reachable', message: 'snapshots can be stored here' }
  } catch (error) {
    signal.throwIfAborted()
    if (isStatusError(error)) throw error
    if (!(error instanceof StoreProblem) && !isStorageError(error)) throw error
    return { type: 'Ready', status: 'False', reason: error.reason, message: error.message }
  }
}
