// The APIs that a member exports: their definitions are shown in the logical clusters that may use the member, custom
// resources are copied into the member, and their status comes back. The member that exports an API runs all of its
// objects; the scheduler has no part in it. Upstream objects get no finalizer: a deletion is found by the copy.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import { childSignal } from '#async/index.ts'
import {
  clusterInKey,
  createInformer,
  keyFor,
  namespaceKeyOf,
  ObjectIndex,
  parseKey,
  withoutManagedFields,
  type Informer,
} from '#client/index.ts'
import { definitionName, exportedFromLabel, managedLabel, type ExportedApi, type MemberExports } from '#crds/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import { isSubset } from '#syncer/context/is-subset.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import { Scope, type Reconcile } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { reconcileIn, reconcileCustomObject, type CustomObject, type SyncedApi } from './custom-object.ts'
import { definitionUp, type DefinitionUp } from './exported-definition.ts'

const definitionsGvr = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' } as const
const backoff = { firstMs: 100, maxMs: 5000 }
/** How often the member is asked for its definitions, and logical clusters whether a name is free now. */
const againSeconds = 30
const workers = 4
const reportMs = 100
const maxProblems = 5
const fieldManager = 'kcp-exports'

export interface ExportedApis extends AsyncDisposable {
  /** Whether custom resources of the namespace are, or should be, in the member. */
  isIn(cluster: string, namespace: string): boolean
}

/** Resolves when the definitions and objects that exist are known, so that nothing is taken for absent. */
export async function startExportedApis(
  context: SyncContext,
  options: MemberExports,
  signal: AbortSignal,
): Promise<ExportedApis> {
  const exported = new Exported(context, options, signal)
  await exported.start()
  return exported
}

class Exported implements ExportedApis {
  readonly #context: SyncContext
  readonly #options: MemberExports
  readonly #life: ReturnType<typeof childSignal>
  readonly #definitions: Informer<KubeObject>
  /** The definitions that are shown from this member, by name. */
  readonly #shown: ObjectIndex
  /** The exported and the withdrawn APIs, by name of the definition. */
  readonly #apis: ReadonlyMap<string, { readonly api: Readonly<ExportedApi>; readonly isWithdrawn: boolean }>
  readonly #synced = new Map<string, SyncedApi>()
  readonly #problems = new Map<string, string>()
  readonly #queue = createKeyQueue({
    maxMs: 30_000,
    fairnessKey: (key) => clusterInKey(key.slice(key.lastIndexOf(' ') + 1)),
  })
  readonly #stack = new DisposableStack()
  #reported = ''
  #done: Promise<void> = Promise.resolve()

  constructor(context: SyncContext, options: MemberExports, signal: AbortSignal) {
    this.#context = context
    this.#options = options
    this.#life = childSignal(signal)
    const row = (isWithdrawn: boolean) => (api: Readonly<ExportedApi>) =>
      [definitionName(api), { api, isWithdrawn }] as const
    this.#apis = new Map([...options.apis.map(row(false)), ...options.former.map(row(true))])
    this.#definitions = createInformer<KubeObject>({
      client: context.upstream.client('*'),
      gvr: definitionsGvr,
      labelSelector: exportedFromLabel,
      allClusters: true,
      storedOnly: true,
      transform: withoutManagedFields,
      backoff,
      log: context.log,
      signal: this.#life.signal,
    })
    this.#shown = new ObjectIndex(this.#definitions, (_, { metadata: { name = '', labels } }) =>
      labels?.[exportedFromLabel] === context.member.name ? [name] : [],
    )
  }

  async start(): Promise<void> {
    const { signal } = this.#life
    await this.#definitions.synced(signal)
    for (const name of this.#apis.keys())
      await this.#reconcileApi(name, signal).then(
        // The first reconciles run before the queue's loop.
        () => this.#queue.addAfter(`api ${name}`, againSeconds * 1000),
        () => this.#queue.add(`api ${name}`),
      )
    this.#stack.defer(
      this.#definitions.onChange(({ key }) => {
        const { cluster = '', name } = parseKey(key)
        if (!this.#apis.has(name)) return
        this.#queue.add(`definition ${key}`)
        for (const object of this.#objectsOf(name, cluster)) this.#queue.add(`object ${name} ${object}`)
      }),
    )
    this.#stack.defer(this.#options.onAdmission((cluster) => this.#reconcileCluster(cluster)))
    this.#done = runController({
      name: 'exported-apis',
      queue: this.#queue,
      workers,
      log: this.#context.log,
      signal,
      reconcile: (key, life) => this.#request(key, life),
    })
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#life.abort(new DOMException('the syncer was closed', 'AbortError'))
    this.#life[Symbol.dispose]()
    await this.#done.catch(() => undefined)
    this.#stack.dispose()
    this.#shown[Symbol.dispose]()
    this.#queue[Symbol.dispose]()
    await this.#definitions[Symbol.asyncDispose]()
    for (const one of this.#synced.values()) await one[Symbol.asyncDispose]()
  }

  isIn(cluster: string, namespace: string): boolean {
    const id = this.#context.upstream.ids.idOf(cluster)
    for (const [name, { groups, copyGroups }] of this.#synced) {
      if (id !== undefined && !isEmpty(copyGroups.keysOf(`${id}-${namespace}`))) return true
      if (!this.#isOffered(name, cluster)) continue
      for (const { metadata } of groups.of(`${cluster}|${namespace}`))
        if (metadata.deletionTimestamp === undefined) return true
    }
    return false
  }

  #reconcileCluster(cluster: string): void {
    for (const name of this.#apis.keys()) this.#queue.add(`definition ${keyFor({ cluster, name })}`)
  }

  async #request(request: string, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const [kind, name = '', key = ''] = request.split(' ')
    if (kind === 'api') return await this.#reconcileApi(name, signal)
    if (kind === 'definition') return await this.#reconcileDefinition(name, signal)
    if (kind === 'report') {
      this.#report()
      return undefined
    }
    const synced = this.#synced.get(name)
    if (synced === undefined) return undefined
    const { cluster = '', namespace = '', name: object } = parseKey(key)
    const reconcile = reconcileIn(this.#context, { cluster, namespace }, signal)
    const { memberNamespace } = reconcile
    const custom = {
      api: synced,
      name: object,
      object: synced.objects.store.get(key),
      copy:
        (memberNamespace && synced.copies.store.get(keyFor({ namespace: memberNamespace, name: object }))) || undefined,
      isOffered: this.#isOffered(name, cluster),
    }
    await reconcileCustomObject(reconcile, custom, (copy) => this.#confirmGone(name, reconcile, custom, copy))
    return undefined
  }

  /**
   * Resolves if the copy may be deleted: an admin has decided so, or the server says that its object, or the definition
   * of it, is gone. Rejects with ServiceUnavailable if only a list lacked it.
   */
  async #confirmGone(
    name: string,
    { cluster, namespace, upstreamClient: client, signal }: Reconcile,
    { api: { gvr, objects }, name: object }: CustomObject,
    copy: CachedObject,
  ): Promise<void> {
    if ((this.#apis.get(name)?.isWithdrawn ?? true) || !this.#options.admits(cluster)) return
    if (this.#shownFrom(name, cluster) === undefined) {
      const definition = await client.tryGet<KubeObject>(definitionsGvr, { name }, { signal })
      if (definition?.metadata.labels?.[exportedFromLabel] !== this.#context.member.name) return
      this.#definitions.relist()
      throw serviceUnavailable(`${name} is there, but was not in the list of all logical clusters`)
    }
    const found = await client.tryGet<KubeObject>(gvr, { namespace, name: object }, { signal })
    if (found === undefined || found.metadata.uid !== locatorOf(copy)?.uid) return
    objects.relist()
    throw serviceUnavailable(`${gvr.resource} "${object}" is there, but was not in the list of all logical clusters`)
  }

  /** Whether the logical cluster has the definition from this member, and may use it. */
  #isOffered(name: string, cluster: string): boolean {
    const isWithdrawn = this.#apis.get(name)?.isWithdrawn ?? true
    return !isWithdrawn && this.#options.admits(cluster) && this.#shownFrom(name, cluster) === this.#context.member.name
  }

  #shownFrom(name: string, cluster: string): string | undefined {
    return this.#definitions.store.get(keyFor({ cluster, name }))?.metadata.labels?.[exportedFromLabel]
  }

  /** Keys of the objects of a logical cluster that are there, or have a copy. */
  *#objectsOf(name: string, cluster: string): Generator<string> {
    const synced = this.#synced.get(name)
    if (synced === undefined) return
    yield* synced.groups.keysOf(cluster)
    for (const copy of this.#copiesOf(synced, cluster)) yield copy
  }

  *#copiesOf({ copyGroups }: SyncedApi, cluster: string): Generator<string> {
    const id = this.#context.upstream.ids.idOf(cluster)
    if (id === undefined) return
    for (const copy of copyGroups.of(id)) {
      const locator = locatorOf(copy)
      if (locator !== undefined) yield keyFor({ cluster, namespace: locator.namespace, name: locator.name })
    }
  }

  /** Reads the definition in the member, and begins to sync its objects. */
  async #reconcileApi(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const again = { requeueAfterSeconds: againSeconds }
    const read = await this.#readDefinition(name, signal)
    this.#tell(name, 'problem' in read ? read.problem : undefined)
    if (!('problem' in read)) {
      const known = this.#synced.get(name)
      const isSame = known?.gvr.version === read.version && isSubset(known.definition, read.definition)
      if (!isSame || !isSubset(read.definition, known.definition)) {
        await known?.[Symbol.asyncDispose]()
        this.#synced.set(name, await this.#sync(name, read, signal))
        for (const cluster of this.#options.clusters()) this.#queue.add(`definition ${keyFor({ cluster, name })}`)
      }
    }
    this.#reportSoon()
    return again
  }

  async #readDefinition(name: string, signal: AbortSignal): Promise<DefinitionUp> {
    const { downstream, member } = this.#context
    const rejoin = `join it again with --export ${name}`
    try {
      const live = await downstream.tryGet<KubeObject>(definitionsGvr, { name }, { signal })
      if (live === undefined) return { problem: `the member has no CustomResourceDefinition ${name}` }
      const read = definitionUp(live, member.name)
      if ('problem' in read) return read
      await downstream.list({ ...this.#apiOf(name), version: read.version }, { limit: 1, metadataOnly: true, signal })
      return read
    } catch (error) {
      if (isStatusError(error, 'Forbidden'))
        return { problem: `kcp has no rights for ${name} in the member: ${rejoin}` }
      throw error
    }
  }

  #apiOf(name: string): Readonly<ExportedApi> {
    const { api } = this.#apis.get(name) ?? {}
    if (api === undefined) throw new Error(`"${name}" is not exported`)
    return api
  }

  async #sync(
    name: string,
    { definition, version, hasStatus }: Exclude<DefinitionUp, { problem: string }>,
    signal: AbortSignal,
  ): Promise<SyncedApi> {
    const { upstream, downstream, log } = this.#context
    const gvr = { ...this.#apiOf(name), version }
    const common = { gvr, transform: withoutManagedFields<KubeObject>, backoff, log, signal: this.#life.signal }
    const objects = createInformer<KubeObject>({
      ...common,
      client: upstream.client('*'),
      allClusters: true,
      storedOnly: true,
    })
    const copies = createInformer<KubeObject>({ ...common, client: downstream, labelSelector: `${managedLabel}=true` })
    const groups = new ObjectIndex(objects, (key) => [namespaceKeyOf(key), clusterInKey(key)])
    const copyGroups = new ObjectIndex(copies, (key, copy) => {
      const id = locatorOf(copy)?.clusterId
      return id === undefined ? [namespaceKeyOf(key)] : [namespaceKeyOf(key), id]
    })
    await Promise.all([objects.synced(signal), copies.synced(signal)])
    const add = (cluster: string, namespace: string, object: string): void => {
      this.#queue.add(`object ${name} ${keyFor({ cluster, namespace, name: object })}`)
      this.#context.enqueue({ kind: 'namespace', cluster, namespace, name: namespace })
    }
    const ends = [
      objects.onChange(({ key }) => {
        const { cluster = '', namespace = '', name: object } = parseKey(key)
        add(cluster, namespace, object)
      }),
      copies.onChange(({ key, before, after }) => {
        const found = Scope.ofMember(this.#context, parseKey(key).namespace ?? '')
        if (found !== undefined) add(found.cluster, found.namespace, parseKey(key).name)
        // When the last copy is gone, a withdrawn definition may be deleted.
        const isLast = before !== undefined && after === undefined && found !== undefined
        if (isLast) this.#queue.add(`definition ${keyFor({ cluster: found.cluster, name })}`)
      }),
    ]
    return {
      gvr,
      hasStatus,
      definition,
      objects,
      groups,
      copies,
      copyGroups,
      async [Symbol.asyncDispose]() {
        for (const end of ends) end()
        groups[Symbol.dispose]()
        copyGroups[Symbol.dispose]()
        await Promise.all([objects, copies].map((one) => one[Symbol.asyncDispose]()))
      },
    }
  }

  /** Shows the definition in a logical cluster, or takes it away. `key`: `CLUSTER|NAME`. */
  async #reconcileDefinition(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { cluster = '', name } = parseKey(key)
    const row = this.#apis.get(name)
    const synced = this.#synced.get(name)
    const { member, upstream } = this.#context
    const from = this.#shownFrom(name, cluster)
    const isOther = from !== undefined && from !== member.name && this.#options.isMember(from)
    const wanted = row?.isWithdrawn === false && this.#options.admits(cluster)
    let problem: string | undefined
    if (wanted && synced !== undefined) {
      if (isOther) problem = `logical cluster "${cluster}" has ${name} from member cluster "${from}"`
      else if (from === undefined && (await upstream.client(cluster).tryGet(definitionsGvr, { name }, { signal })))
        problem = `logical cluster "${cluster}" has a CustomResourceDefinition ${name} of its own`
      else problem = await this.#show(cluster, synced.definition, signal)
    } else if (!wanted && from === member.name) await this.#withdraw(cluster, name, signal)
    this.#tell(key, problem)
    this.#reportSoon()
    return problem === undefined ? {} : { requeueAfterSeconds: againSeconds }
  }

  async #show(cluster: string, definition: KubeObject, signal: AbortSignal): Promise<string | undefined> {
    const { name = '' } = definition.metadata
    const shown = this.#definitions.store.get(keyFor({ cluster, name }))
    if (isSubset(shown, definition)) return undefined
    const options = { fieldManager, force: true, signal }
    try {
      await this.#context.upstream.client(cluster).patch(definitionsGvr, { name }, 'apply', definition, options)
      return undefined
    } catch (error) {
      if (!isStatusError(error) || error.code >= 500 || error.code === 409 || error.code === 429) throw error
      return `logical cluster "${cluster}" refuses ${name}: ${error.message.slice(0, 300)}`
    }
  }

  /** When no copy is left, the definition goes; where objects are left, it stays as the tenant's own. */
  async #withdraw(cluster: string, name: string, signal: AbortSignal): Promise<void> {
    const synced = this.#synced.get(name)
    if (synced !== undefined) {
      const copies = [...this.#copiesOf(synced, cluster)]
      for (const copy of copies) this.#queue.add(`object ${name} ${copy}`)
      if (copies.length > 0) return
    }
    const client = this.#context.upstream.client(cluster)
    const shown = this.#definitions.store.get(keyFor({ cluster, name }))
    const { uid } = shown?.metadata ?? {}
    const isUsed = synced !== undefined && !isEmpty(synced.groups.keysOf(cluster))
    const metadata = { ...(uid && { uid }), labels: { [exportedFromLabel]: null } }
    if (isUsed || synced === undefined)
      await client
        .patch(definitionsGvr, { name }, 'merge', { metadata }, { signal })
        .catch(tolerate('NotFound', 'Conflict'))
    else
      await client
        .delete(definitionsGvr, { name }, { ...(uid && { uid }), signal })
        .catch(tolerate('NotFound', 'Conflict'))
  }

  #tell(key: string, problem: string | undefined): void {
    if (problem === undefined) this.#problems.delete(key)
    else this.#problems.set(key, problem)
  }

  /** Sends one report for many reconciles, because a report reads everything that was noted. */
  #reportSoon(): void {
    this.#queue.addAfter('report', reportMs)
  }

  #report(): void {
    const withdrawn = [...this.#apis]
      .filter(([name, { isWithdrawn }]) => isWithdrawn && isEmpty(this.#shown.keysOf(name)))
      .map(([name]) => name)
    const problems = [...this.#problems.values()].sort().slice(0, maxProblems)
    const report = { problems, withdrawn }
    if (this.#reported === JSON.stringify(report)) return
    this.#reported = JSON.stringify(report)
    this.#options.report(report)
  }
}

function isEmpty(items: Iterable<unknown>): boolean {
  for (const _ of items) return false
  return true
}
