// The loop of a controller: informers fill a queue of keys, workers reconcile them. A controller that serves members
// begins when there is a MemberCluster.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { clusterInKey, type Informer } from '#client/index.ts'
import { memberClusters, type MemberCluster } from '#crds/index.ts'
import { createKeyQueue, runController, type Reconcile } from '#reconcile/index.ts'
import type { OperatorContext, OperatorController } from './operator-context.ts'

export interface Loop {
  /** The name of the controller in logs and metrics. */
  readonly name: string
  readonly workers: number
  /** Longest backoff of one key. Default 30 s. */
  readonly maxMs?: number
  /** Milliseconds after which a reconcile is aborted. Default 120 s. */
  readonly timeoutMs?: number
  /** The group of a key; groups are served in rotation. Default: the logical cluster in the key. */
  readonly fairnessKey?: (key: string) => string
  /** Informers that have all their objects before the first reconcile. */
  readonly informers: readonly Pick<Informer<KubeObject>, 'synced'>[]
  /** Subscribes to the changes that put keys into the queue. Returns the functions that end the subscriptions. */
  readonly follow: (add: (key: string) => void) => readonly (() => void)[]
  readonly reconcile: Reconcile
}

/** Runs a loop until the signal aborts; resolves when its last reconcile has ended. Rejects with signal.reason. */
export async function runLoop(
  { informers, follow, maxMs = 30_000, fairnessKey = clusterInKey, ...controller }: Loop,
  { log }: Pick<OperatorContext, 'log'>,
  signal: AbortSignal,
): Promise<void> {
  await Promise.all(informers.map((informer) => informer.synced(signal)))
  using queue = createKeyQueue({ maxMs, fairnessKey })
  using subscriptions = new DisposableStack()
  for (const end of follow((key) => queue.add(key))) subscriptions.defer(end)
  await runController({ ...controller, queue, log, signal })
}

export interface LoopSetup {
  readonly context: OperatorContext
  readonly members: Informer<MemberCluster>
  /** Disposed of when the loop has ended. */
  readonly stack: DisposableStack
  readonly signal: AbortSignal
}

/**
 * A controller whose loop is prepared once there is a MemberCluster: without members, its watches would serve nobody.
 */
export function loopWithMembers(
  name: string,
  prepare: (setup: LoopSetup) => Omit<Loop, 'name'> | Promise<Omit<Loop, 'name'>>,
): OperatorController {
  return {
    name,
    async run(context, { signal, started }) {
      const members = context.informers.of<MemberCluster>(memberClusters)
      started()
      await untilOne(members, signal)
      using stack = new DisposableStack()
      const loop = await prepare({ context, members, stack, signal })
      await runLoop({ name, ...loop }, context, signal)
    },
  }
}

/** Resolves when there is an object. Rejects with signal.reason. */
export async function untilOne<T extends KubeObject>(objects: Informer<T>, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  const unsubscribe = objects.onChange(() => resolve(undefined))
  try {
    signal.throwIfAborted()
    await promise
  } finally {
    unsubscribe()
    signal.removeEventListener('abort', abort)
  }
}
