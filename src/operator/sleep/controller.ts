// Puts logical clusters to sleep and wakes them, as decideSleep says. One timer for all: each of its passes looks at
// when those with rules are due.
import { systemClock, timestamp, type Clock } from '#async/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  logicalClusters,
  maxOrder,
  sleepOrderAnnotation,
  wakeOrderAnnotation,
  type LogicalCluster,
} from '#crds/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent } from '#operator/framework/record-event.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import { decideSleep, type SleepDecision } from './decide-sleep.ts'

export interface SleepDeps {
  readonly clock?: Clock
}

/** Milliseconds between two passes: how late a logical cluster may fall asleep, and a schedule may wake it. */
const everyMs = 1000

export function sleepController({ clock = systemClock }: SleepDeps = {}): OperatorController {
  return {
    name: 'sleep',
    async run(context, { signal, started }) {
      const objects = context.informers.of<LogicalCluster>(logicalClusters)
      await objects.synced(signal)
      using queue = createKeyQueue()
      using due = new DueTimes(clock, (name) => queue.add(name))
      const startedMs = clock.now()
      const unfollow = objects.onChange(({ key, before, after }) => {
        if (after === undefined) due.forget(key)
        else if (concerns(before) || concerns(after)) queue.add(key)
      })
      started()
      const reconcile = async (name: string, life: AbortSignal): Promise<ReconcileResult> => {
        const object = objects.store.get(name)
        if (object === undefined || object.metadata.deletionTimestamp !== undefined) {
          due.forget(name)
          return {}
        }
        const decision = decideSleep({ ...inputOf(object), nowMs: clock.now(), startedMs })
        due.set(name, decision.nextMs)
        if (decision.patch !== undefined) await write(object, decision, { context, clock }, life)
        return {}
      }
      try {
        await runController({ name: 'sleep', queue, workers: 4, reconcile, log: context.log, signal })
      } finally {
        unfollow()
      }
    },
  }
}

/** Whether the logical cluster has rules of sleep, or had them. Most have none, and cost nothing. */
function concerns(object: DeepReadonly<LogicalCluster> | undefined): boolean {
  return object?.spec?.sleep !== undefined || object?.status?.sleep !== undefined
}

function inputOf({ metadata, spec, status }: DeepReadonly<LogicalCluster>) {
  const { [sleepOrderAnnotation]: sleep, [wakeOrderAnnotation]: wake } = metadata.annotations ?? {}
  return {
    name: metadata.name,
    spec: spec?.sleep,
    status: status?.sleep,
    orders: {
      ...(sleep !== undefined && { sleep: sleep.slice(0, maxOrder) }),
      ...(wake !== undefined && { wake: wake.slice(0, maxOrder) }),
    },
  }
}

/** Writes a decision, if nothing has changed since: else the change brings the next one. */
async function write(
  object: DeepReadonly<LogicalCluster>,
  { patch, turns }: SleepDecision,
  { context, clock }: { readonly context: OperatorContext; readonly clock: Clock },
  signal: AbortSignal,
): Promise<void> {
  const { clusters, virtual, log } = context
  const { name, uid, resourceVersion } = object.metadata
  const body = { metadata: { uid, resourceVersion }, status: { sleep: patch } }
  await clusters.patch(logicalClusters, { name }, 'merge', body, { subresource: 'status', signal })
  if (turns === undefined) return
  log.info(turns.to === 'Asleep' ? 'a logical cluster falls asleep' : 'a logical cluster wakes up', { cluster: name })
  const text = { type: 'Normal', reason: turns.to, message: turns.message } as const
  const by = { component: 'kcp-sleep', now: timestamp(clock.now()), log }
  await recordEvent(object, text, { ...by, client: clusters }, signal)
  // Its users read Events in their own logical cluster.
  const tenants = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'default' } }
  await recordEvent(tenants, text, { ...by, client: virtual(`/clusters/${name}`) }, signal)
}

/** When logical clusters are due, by name. */
class DueTimes implements Disposable {
  readonly #times = new Map<string, number>()
  readonly #clock: Clock
  readonly #isDue: (name: string) => void
  #timer: NodeJS.Timeout | undefined

  constructor(clock: Clock, isDue: (name: string) => void) {
    this.#clock = clock
    this.#isDue = isDue
  }

  /** `ms`: Unix milliseconds; undefined: never. */
  set(name: string, ms: number | undefined): void {
    if (ms === undefined) this.#times.delete(name)
    else this.#times.set(name, ms)
    this.#arm()
  }

  forget(name: string): void {
    this.#times.delete(name)
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer)
    this.#times.clear()
  }

  #arm(): void {
    if (this.#timer !== undefined || this.#times.size === 0) return
    this.#timer = setTimeout(() => {
      this.#timer = undefined
      this.#pass()
      this.#arm()
    }, everyMs).unref()
  }

  #pass(): void {
    const now = this.#clock.now()
    for (const [name, at] of this.#times) {
      if (at > now) continue
      this.#times.delete(name)
      this.#isDue(name)
    }
  }
}
