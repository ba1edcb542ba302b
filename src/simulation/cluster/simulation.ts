// The context of the simulated controllers: caches of one cluster, writes that show up in them at once, Events, loops.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { timestamp } from '#async/index.ts'
import {
  createClient,
  createInformer,
  withoutManagedFields,
  type DeleteOptions,
  type KubeClient,
  type Transport,
} from '#client/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import type { Logger } from '#telemetry/index.ts'
import { Cache } from './cache.ts'
import { gvrOf, resourceNames, type Kinds, type ResourceName } from './objects.ts'

export type Program = 'kube-controller-manager' | 'kube-scheduler' | 'kubelet'

export interface SimulationOptions {
  /** The API of the cluster, whose requests count as those of an administrator of the cluster itself. */
  readonly transport: Transport
  readonly basePath: string
  readonly log: Logger
  readonly signal: AbortSignal
}

type Caches = { readonly [Name in ResourceName]: Cache<Kinds[Name]> }

export interface LoopOptions {
  readonly name: string
  readonly workers?: number
  /** Calls `enqueue` for each key to reconcile. */
  readonly follow: (enqueue: (key: string, afterMs?: number) => void) => void
  readonly reconcile: (key: string, signal: AbortSignal) => Promise<ReconcileResult | undefined> | Promise<void>
}

export interface EventText {
  readonly type: 'Normal' | 'Warning'
  readonly reason: string
  readonly message: string
  readonly by: string
}

/** A timer of more than 24 days would fire at once. */
const longestWaitSeconds = 3600

function nodeNameOf({ spec }: KubeObject): string | undefined {
  return (spec as { nodeName?: string } | undefined)?.nodeName
}

export class Simulation {
  readonly cache: Caches
  readonly log: Logger
  readonly signal: AbortSignal
  readonly #clients = new Map<Program, KubeClient>()
  readonly #options: SimulationOptions
  readonly #synced: Promise<void>[] = []
  readonly #running = new Set<Promise<unknown>>()

  constructor(options: SimulationOptions) {
    this.#options = options
    this.log = options.log
    this.signal = options.signal
    this.cache = Object.fromEntries(resourceNames.map((resource) => [resource, this.#follow(resource)])) as Caches
  }

  /** Resolves once all caches have the first list. */
  async synced(): Promise<void> {
    await Promise.all(this.#synced)
  }

  /** Resolves once all loops have ended, after the signal. */
  async ended(): Promise<void> {
    await Promise.all(this.#running)
  }

  client(program: Program = 'kube-controller-manager'): KubeClient {
    let client = this.#clients.get(program)
    if (client === undefined) {
      const { transport, basePath } = this.#options
      this.#clients.set(program, (client = createClient(transport, { basePath, userAgent: program })))
    }
    return client
  }

  now(): string {
    return timestamp(Date.now())
  }

  async create<Name extends ResourceName>(resource: Name, object: KubeObject): Promise<Kinds[Name]> {
    return this.#seen(resource, await this.client().create(gvrOf(resource), object, { signal: this.signal }))
  }

  /** Replaces fields of the status; lists are replaced as a whole. */
  async patchStatus<Name extends ResourceName>(
    resource: Name,
    object: Kinds[Name],
    status: object,
    program: Program = 'kube-controller-manager',
  ): Promise<Kinds[Name] | undefined> {
    const patch = { metadata: { uid: object.metadata.uid }, status }
    return await this.#patch(resource, object, { patch, program, subresource: 'status' })
  }

  async patch<Name extends ResourceName>(
    resource: Name,
    object: Kinds[Name],
    patch: object,
    part: { readonly subresource?: 'status' } = {},
  ): Promise<Kinds[Name] | undefined> {
    return await this.#patch(resource, object, { patch, program: 'kube-controller-manager', ...part })
  }

  /** Deletes the object, if it still has this uid. */
  async delete(
    resource: ResourceName,
    { metadata: { namespace, name = '', uid } }: KubeObject,
    options: Omit<DeleteOptions, 'signal' | 'uid'> = {},
    program: Program = 'kube-controller-manager',
  ): Promise<void> {
    const ref = { name, ...(namespace !== undefined && { namespace }) }
    await this.client(program)
      .delete(gvrOf(resource), ref, { ...options, ...(uid !== undefined && { uid }), signal: this.signal })
      .catch(tolerate('NotFound', 'Conflict'))
  }

  /** Records an Event. A failure is no error, because Events are for people. */
  async event(about: KubeObject, { type, reason, message, by }: EventText): Promise<void> {
    const { namespace = 'default', name = '', uid = '' } = about.metadata
    const now = this.now()
    const object: KubeObject = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { generateName: `${name.slice(0, 200)}.`, namespace },
      involvedObject: { apiVersion: about.apiVersion, kind: about.kind, namespace, name, uid },
      type,
      reason,
      message: message.slice(0, 1024),
      source: { component: by },
      reportingComponent: by,
      firstTimestamp: now,
      lastTimestamp: now,
      count: 1,
    }
    await this.client()
      .create({ group: '', version: 'v1', resource: 'events' }, object, { signal: this.signal })
      .catch((error: unknown) => {
        if (!this.signal.aborted && !isStatusError(error)) throw error
      })
  }

  /** Starts a loop, which ends with the signal. */
  loop({ name, workers = 4, follow, reconcile }: LoopOptions): void {
    const queue = createKeyQueue({ firstMs: 20, maxMs: 5000 })
    follow((key, afterMs) => {
      if (afterMs === undefined) queue.add(key)
      else queue.addAfter(key, afterMs)
    })
    const { signal } = this
    const tried = async (key: string, life: AbortSignal): Promise<ReconcileResult | undefined> => {
      try {
        const { requeueAfterSeconds } = (await reconcile(key, life)) ?? {}
        if (requeueAfterSeconds === undefined) return undefined
        return { requeueAfterSeconds: Math.min(requeueAfterSeconds, longestWaitSeconds) }
      } catch (error) {
        // What is in a namespace that is being deleted goes with it.
        if (isStatusError(error, 'Forbidden') && error.message.endsWith('because it is being terminated'))
          return undefined
        throw error
      }
    }
    const run = runController({ name, queue, workers, reconcile: tried, log: this.log, signal, graceMs: 0 })
    this.run(run.finally(() => queue[Symbol.dispose]()))
  }

  /** Waits for the promise at the end. */
  run(work: Promise<unknown>): void {
    const done = work.catch((error: unknown) => {
      if (!this.signal.aborted) this.log.error('a simulated controller has ended', { error })
    })
    this.#running.add(done)
    void done.finally(() => this.#running.delete(done))
  }

  #follow<Name extends ResourceName>(resource: Name): Cache<Kinds[Name]> {
    // Pods are found by their node.
    const cache = new Cache<Kinds[Name]>(resource === 'pods' ? nodeNameOf : undefined)
    const { log, signal } = this
    const transform = withoutManagedFields<Kinds[Name]>
    const informer = createInformer({ client: this.client(), gvr: gvrOf(resource), transform, log, signal })
    informer.onChange(({ before, after }) => {
      if (after === undefined) cache.remove(before as KubeObject)
      else cache.put(after as Kinds[Name])
    })
    const synced = informer.synced(signal)
    synced.catch(() => undefined)
    this.#synced.push(synced)
    return cache
  }

  async #patch<Name extends ResourceName>(
    resource: Name,
    { metadata: { namespace, name = '' } }: Kinds[Name],
    { patch, program, subresource }: { patch: object; program: Program; subresource?: string },
  ): Promise<Kinds[Name] | undefined> {
    const ref = { name, ...(namespace !== undefined && { namespace }) }
    const options = { ...(subresource !== undefined && { subresource }), signal: this.signal }
    const changed = await this.client(program)
      .patch<Kinds[Name]>(gvrOf(resource), ref, 'merge', patch, options)
      // The object was deleted, or made again under the same name: a change of its cache causes another reconcile.
      .catch(tolerate('NotFound', 'Conflict'))
    return changed === undefined ? undefined : this.#seen(resource, changed)
  }

  #seen<Name extends ResourceName>(resource: Name, object: Kinds[Name] | KubeObject): Kinds[Name] {
    const seen = withoutManagedFields(object) as Kinds[Name]
    const cache: Cache<Kinds[Name]> = this.cache[resource]
    cache.put(seen)
    return seen
  }
}
