// The life of LogicalClusters: observe, plan, apply, until the plan is empty.
import { timestamp, systemClock, type Clock } from '../../async/index.ts'
import { isStatusError, tolerate } from '../../apimachinery/status/index.ts'
import { contentFinalizer, logicalClusters, memberClusters, type LogicalCluster } from '../../crds/index.ts'
import type { DeepReadonly, Informer, KubeClient } from '../../client/index.ts'
import { createKeyQueue, runController, type KeyQueue, type Outcome } from '../../reconcile/index.ts'
import type { OperatorContext, OperatorController } from '../operator-context.ts'
import { ResilientOperator } from '../resilient-operator.ts'
import type { ContentLeft, HeldObject } from './content-left.ts'
import { findContent } from './find-content.ts'
import { contentSeconds, plan, type Observed, type Step } from './plan.ts'

/** Failures of the probe before the status tells of it: a server may hear of a new logical cluster a moment later than we. */
const quietProbes = 4

/** Takes LogicalClusters from creation to Ready, and from deletion to nothing. */
export const logicalClusterController: OperatorController = {
  name: 'logical-cluster',
  async run(context, { signal, started }) {
    const members = context.informers.of(memberClusters)
    const objects = context.informers.of<LogicalCluster>(logicalClusters)
    // Before the first visit we must know whether there are members that may hold content.
    await Promise.all([members.synced(signal), objects.synced(signal)])
    using queue = createKeyQueue({ firstMs: 5 })
    const operator = new LogicalClusterOperator(context, { queue, objects, memberCount: () => members.store.size })
    await operator.start()
    started()
    const { log } = context
    await runController({
      name: 'logical-cluster',
      queue,
      workers: 8,
      reconcile: (key, life) => operator.reconcile(key, life),
      log,
      signal,
    })
    operator.stop()
  },
}

interface Parts {
  readonly queue: KeyQueue
  readonly objects: Informer<LogicalCluster>
  readonly memberCount: () => number
  readonly clock?: Clock
}

class LogicalClusterOperator extends ResilientOperator {
  readonly #context: OperatorContext
  readonly #parts: Required<Parts>

  constructor(context: OperatorContext, { clock = systemClock, ...parts }: Parts) {
    super({ client: context.clusters, informers: context.informers, log: context.log })
    this.#context = context
    this.#parts = { clock, ...parts }
  }

  protected override async init(): Promise<void> {
    const { group, version, resource } = logicalClusters
    await this.watchResource(group, version, resource, async ({ meta }) => this.#parts.queue.add(meta.name))
  }

  async reconcile(name: string, signal: AbortSignal): Promise<Outcome> {
    let found: Pick<Observed, 'served' | 'content'> = {}
    let outcome: Outcome = {}
    // Each round finds something out or comes nearer to the end; a plan that goes on for longer is wrong.
    for (let round = 0; round < 5; round++) {
      const object = this.#object(name)
      if (object === undefined) return {}
      const now = timestamp(this.#parts.clock.now())
      const steps = plan({ object, urls: this.#context.urls(name), now, ...found })
      if (steps.length === 0) break
      for (const step of steps) {
        if (step.do === 'probe') found = { ...found, served: await this.#probe(name, signal) }
        else if (step.do === 'lookAtContent') found = { ...found, content: await this.#lookAtContent(name, signal) }
        else if (step.do === 'waitForContent')
          outcome = { requeueAfterSeconds: contentSeconds(object, this.#parts.clock.now()) }
        else await this.#apply(step, name, found.content?.held ?? [], signal)
      }
      const last = steps.at(-1)?.do
      if (last !== 'probe' && last !== 'lookAtContent') break
    }
    // Told in the status; asked again after the backoff.
    if (found.served?.ok === false) throw new Error(found.served.message)
    return outcome
  }

  async #apply(
    step: Exclude<Step, { do: 'probe' | 'lookAtContent' | 'waitForContent' }>,
    name: string,
    held: readonly HeldObject[],
    signal: AbortSignal,
  ): Promise<void> {
    const object = this.#object(name)
    if (object === undefined) return
    const event = this.eventFor(logicalClusters, object)
    switch (step.do) {
      case 'takeFinalizer':
        await this.handleResourceFinalizer(event, contentFinalizer, async () => undefined)
        return
      case 'setStatus':
        await this.setResourceStatus(event.meta, step.status)
        return
      case 'deleteObjects':
        await deleteObjects(this.#virtual(name), held, signal)
        return
      case 'purgeAndRelease':
        await this.handleResourceFinalizer(event, contentFinalizer, () => this.#purge(object, signal))
        return
    }
  }

  /** As the cache has it, or newer where we wrote it ourselves. */
  #object(name: string): DeepReadonly<LogicalCluster> | undefined {
    const cached = this.#parts.objects.store.get(name)
    return cached === undefined ? undefined : this.newest<LogicalCluster>(logicalClusters, cached)
  }

  async #probe(name: string, signal: AbortSignal): Promise<NonNullable<Observed['served']>> {
    try {
      await this.#virtual(name).raw('/api/v1/namespaces/default', { signal })
      return { ok: true }
    } catch (error) {
      signal.throwIfAborted()
      if (this.#parts.queue.failures(name) < quietProbes) throw error
      return { ok: false, message: `its API does not answer: ${(error as Error).message}` }
    }
  }

  async #lookAtContent(name: string, signal: AbortSignal): Promise<ContentLeft> {
    // No member, no copies: thousands of logical clusters go without a look into each.
    if (this.#parts.memberCount() === 0) return { total: 0, held: [], counts: [] }
    try {
      return await findContent(this.#virtual(name), signal)
    } catch (error) {
      // Served no more: it was purged before, and only our finalizer is left.
      if (isStatusError(error, 'NotFound')) return { total: 0, held: [], counts: [] }
      throw error
    }
  }

  async #purge({ metadata }: DeepReadonly<LogicalCluster>, signal: AbortSignal): Promise<void> {
    const body = { apiVersion: 'v1', kind: 'DeleteOptions', preconditions: { uid: metadata.uid } }
    await this.#virtual(metadata.name).raw('', { method: 'DELETE', body, signal }).catch(tolerate('NotFound'))
  }

  #virtual(name: string): KubeClient {
    return this.#context.virtual(`/clusters/${name}`)
  }
}

const deletesAtATime = 16

async function deleteObjects(client: KubeClient, held: readonly HeldObject[], signal: AbortSignal): Promise<void> {
  const left = held.filter(({ deleting }) => !deleting)
  const deleteNext = async (): Promise<void> => {
    for (let next = left.pop(); next !== undefined; next = left.pop()) {
      const { gvr, namespace, name, uid } = next
      // Gone already, or made anew by somebody: the next look tells.
      const ref = namespace === undefined ? { name } : { name, namespace }
      await client
        .delete(gvr, ref, { uid, propagationPolicy: 'Background', signal })
        .catch(tolerate('NotFound', 'Conflict'))
    }
  }
  await Promise.all(Array.from({ length: deletesAtATime }, deleteNext))
}
