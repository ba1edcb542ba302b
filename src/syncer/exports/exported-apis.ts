// The APIs that a member exports: the syncer tells the operator the definitions that the member has, copies the custom
// resources that the scheduler places there, and reports what the member makes of them. The operator gives logical
// clusters the definitions. Upstream objects get no finalizer: a deletion is found by the copy.
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { isDeeperThan } from '#apimachinery/schema/index.ts'
import { isStatusError, serviceUnavailable, tolerate } from '#apimachinery/status/index.ts'
import { childSignal } from '#async/index.ts'
import { clusterInKey, createInformer, keyFor, parseKey, withoutManagedFields } from '#client/index.ts'
import {
  adoptedNamespace,
  definitionName,
  exportedFromLabel,
  hasCopy,
  maxDefinitionDepth,
  placedOn,
  placedOnAnnotation,
  type ExportedApi,
  type MemberExports,
  type SeenDefinition,
} from '#crds/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import { Scope, type Reconcile } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { storedVersion } from '#syncer/rules/stored-version.ts'
import { reconcileIn, reconcileCustomObject, type CustomObject } from './custom-object.ts'
import { upstreamOfCopy } from './copy-name.ts'
import { RelatedObjects } from './related-objects.ts'
import { syncApi, type SyncedApi } from './synced-api.ts'

const definitionsGvr = { group: 'apiextensions.k8s.io', version: 'v1', resource: 'customresourcedefinitions' } as const
const backoff = { firstMs: 100, maxMs: 5000 }
/** How often a member is asked for its definitions that joined before kcp watched them. */
const againSeconds = 30
const workers = 4
const reportMs = 100

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

interface Row {
  readonly api: Readonly<ExportedApi>
  readonly isWithdrawn: boolean
}

class Exported implements ExportedApis {
  readonly #context: SyncContext
  readonly #options: MemberExports
  readonly #life: ReturnType<typeof childSignal>
  /** The exported and the withdrawn APIs, by name of the definition. */
  readonly #apis: ReadonlyMap<string, Row>
  readonly #synced = new Map<string, SyncedApi>()
  readonly #related: RelatedObjects
  readonly #queue = createKeyQueue({
    maxMs: 30_000,
    fairnessKey: (key) => clusterInKey(key.slice(key.lastIndexOf(' ') + 1)),
  })
  readonly #stack = new AsyncDisposableStack()
  #reported = ''
  #done: Promise<void> = Promise.resolve()

  constructor(context: SyncContext, options: MemberExports, signal: AbortSignal) {
    this.#context = context
    this.#options = options
    this.#life = childSignal(signal)
    const row = (isWithdrawn: boolean) => (api: Readonly<ExportedApi>) =>
      [definitionName(api), { api, isWithdrawn }] as const
    this.#apis = new Map([...options.apis.map(row(false)), ...options.former.map(row(true))])
    this.#related = this.#stack.use(
      new RelatedObjects(context, (name, key) => this.#queue.add(`object ${name} ${key}`), this.#life.signal),
    )
  }

  async start(): Promise<void> {
    const { signal } = this.#life
    for (const name of this.#apis.keys()) {
      await this.#follow(name, signal)
      // The first reconciles run before the queue's loop.
      await this.#reconcileApi(name, signal).catch(() => this.#queue.add(`api ${name}`))
    }
    this.#stack.defer(
      this.#options.definitions.onChange(({ key }) => {
        const { cluster = '', name } = parseKey(key)
        if (this.#apis.has(name)) this.#reconcileCluster(name, cluster)
      }),
    )
    this.#stack.defer(
      this.#options.onAdmission((cluster) => {
        for (const name of this.#apis.keys()) this.#reconcileCluster(name, cluster)
      }),
    )
    this.#stack.defer(
      this.#context.upstream.informers.namespaces.onChange(({ key, before, after }) => {
        if (adoptedNamespace(before)?.state !== adoptedNamespace(after)?.state) this.#reconcileNamespace(key)
      }),
    )
    this.#stack.defer(
      this.#context.upstream.ids.onGone((id) => {
        for (const name of this.#apis.keys()) this.#queue.add(`gone ${name} ${id}`)
      }),
    )
    this.#reportSoon()
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
    await this.#stack.disposeAsync()
    this.#queue[Symbol.dispose]()
    for (const one of this.#synced.values()) await one[Symbol.asyncDispose]()
  }

  isIn(cluster: string, namespace: string): boolean {
    const { memberNamespace } = new Scope(this.#context, { cluster, namespace })
    for (const [name, { groups, copyGroups }] of this.#synced) {
      if (memberNamespace !== undefined && !isEmpty(copyGroups.keysOf(memberNamespace))) return true
      if (!this.#isOffered(name, cluster)) continue
      for (const object of groups.of(`${cluster}|${namespace}`)) if (this.#isWanted(object)) return true
    }
    return false
  }

  #isWanted(object: CachedObject): boolean {
    const { member } = this.#context
    return object.metadata.deletionTimestamp === undefined && hasCopy(placedOn(object as KubeObject)[member.name])
  }

  /** All objects of an API in a logical cluster. */
  #reconcileCluster(name: string, cluster: string): void {
    for (const object of this.#objectsOf(name, cluster)) this.#queue.add(`object ${name} ${object}`)
  }

  /** All objects that a namespace of a logical cluster has upstream. */
  #reconcileNamespace(namespaceKey: string): void {
    const { cluster = '', name: namespace } = parseKey(namespaceKey)
    for (const [name, { groups }] of this.#synced)
      for (const object of groups.keysOf(`${cluster}|${namespace}`)) this.#queue.add(`object ${name} ${object}`)
  }

  /** Watches the definition in the member. Where that is not allowed, the member is asked again and again. */
  async #follow(name: string, signal: AbortSignal): Promise<void> {
    const { downstream: client, log } = this.#context
    const selection = { fieldSelector: `metadata.name=${name}` }
    try {
      await client.list(definitionsGvr, { ...selection, limit: 1, metadataOnly: true, signal })
    } catch (error) {
      if (signal.aborted) throw error
      const isOld = isStatusError(error, 'Forbidden')
      if (isOld) log.warn('the member must be joined again before changes of its definitions are watched', { name })
      this.#queue.addAfter(`follow ${name}`, againSeconds * 1000)
      return
    }
    const informer = createInformer<KubeObject>({
      ...selection,
      ...{ client, gvr: definitionsGvr, transform: withoutManagedFields, backoff, log, signal: this.#life.signal },
    })
    this.#stack.use(informer)
    informer.onChange(() => this.#queue.add(`api ${name}`))
  }

  async #request(request: string, signal: AbortSignal): Promise<ReconcileResult | undefined> {
    const [kind, name = '', key = ''] = request.split(' ')
    if (kind === 'follow') await this.#follow(name, signal)
    if (kind === 'follow' || kind === 'api') return await this.#reconcileApi(name, signal)
    if (kind === 'gone') {
      await this.#deleteCopiesOf(name, key, signal)
      return undefined
    }
    if (kind === 'report') {
      this.#report()
      return undefined
    }
    const synced = this.#synced.get(name)
    if (synced === undefined) return undefined
    await this.#reconcileObject(name, synced, key, signal)
    return undefined
  }

  async #reconcileObject(name: string, api: SyncedApi, key: string, signal: AbortSignal): Promise<void> {
    const { cluster = '', namespace = '', name: objectName } = parseKey(key)
    const reconcile = reconcileIn(this.#context, { cluster, namespace }, signal)
    // When the adoption has ended, the objects of the namespace are reconciled.
    if (namespace !== '' && reconcile.isHeld) return
    const object = api.objects.store.get(key)
    const copyRef = api.copyRef(reconcile, objectName)
    const isOffered = this.#isOffered(name, cluster)
    const custom = {
      ...{ api, name: objectName, object, isOffered },
      copy: copyRef && api.copies.store.get(keyFor(copyRef)),
      isWanted: isOffered && object !== undefined && this.#isWanted(object),
      version: this.#versionIn(name, cluster) ?? api.gvr.version,
    }
    // Written by a release without a scheduler for these objects: what is there stays until the scheduler has decided.
    const isUndecided = isOffered && object?.metadata.annotations?.[placedOnAnnotation] === undefined
    if (isUndecided && object !== undefined && locatorOf(custom.copy)?.uid === object.metadata.uid) return
    const live = await reconcileCustomObject(reconcile, custom, {
      confirmGone: (copy) => this.#confirmGone(name, reconcile, custom, copy),
    })
    const references = this.#apis.get(name)?.api.related ?? []
    await this.#related.reconcile(reconcile, { ...custom, key, apiName: name, live, references })
  }

  /**
   * Resolves if the copy may be deleted: an admin has decided so, or the server says that its object, or the definition
   * of it, is gone, or that the scheduler wants it elsewhere. Rejects with ServiceUnavailable if only a list lacked it.
   */
  async #confirmGone(
    name: string,
    { cluster, namespace, upstreamClient: client, signal }: Reconcile,
    { api: { objects }, name: object, version }: CustomObject,
    copy: CachedObject,
  ): Promise<void> {
    const row = this.#apis.get(name)
    if (row === undefined || row.isWithdrawn || !this.#options.admits(cluster)) return
    const { group, resource } = row.api
    if (!this.#isShown(name, cluster)) {
      const definition = await client.tryGet<KubeObject>(definitionsGvr, { name }, { signal })
      if (definition?.metadata.labels?.[exportedFromLabel] === undefined) return
      this.#options.definitions.relist()
      throw serviceUnavailable(`${name} is there, but was not in the list of all logical clusters`)
    }
    const ref = { ...(namespace && { namespace }), name: object }
    const live = await client.tryGet<KubeObject>({ group, resource, version }, ref, { signal })
    if (live === undefined || live.metadata.uid !== locatorOf(copy)?.uid || !this.#isWanted(live)) return
    objects.relist()
    throw serviceUnavailable(`${object} is there, but was not in the list of all logical clusters`)
  }

  /** Deletes the copies of a logical cluster that is gone. Copies with a namespace go with it. */
  async #deleteCopiesOf(name: string, id: string, signal: AbortSignal): Promise<void> {
    const synced = this.#synced.get(name)
    if (synced === undefined || synced.isNamespaced) return
    for (const { metadata } of synced.copyGroups.of(id))
      await this.#context.downstream
        .delete(synced.gvr, { name: metadata.name ?? '' }, { ...(metadata.uid && { uid: metadata.uid }), signal })
        .catch(tolerate('NotFound', 'Conflict'))
  }

  /** Whether the logical cluster has the definition from members, and may use this one. */
  #isOffered(name: string, cluster: string): boolean {
    const isWithdrawn = this.#apis.get(name)?.isWithdrawn ?? true
    return !isWithdrawn && this.#options.admits(cluster) && this.#isShown(name, cluster)
  }

  #isShown(name: string, cluster: string): boolean {
    return this.#options.definitions.store.get(keyFor({ cluster, name })) !== undefined
  }

  /** The stored version of the definition in the logical cluster. */
  #versionIn(name: string, cluster: string): string | undefined {
    const shown = this.#options.definitions.store.get(keyFor({ cluster, name })) as KubeObject | undefined
    return shown && storedVersion(shown['spec'] as JsonObject)
  }

  /** Keys of the objects of a logical cluster that are there, or have a copy. */
  *#objectsOf(name: string, cluster: string): Generator<string> {
    const synced = this.#synced.get(name)
    const id = this.#context.upstream.ids.idOf(cluster)
    if (synced === undefined || id === undefined) return
    yield* synced.groups.keysOf(cluster)
    for (const copy of synced.copyGroups.of(id)) {
      const key = upstreamOfCopy(copy, cluster)
      if (key !== undefined) yield key
    }
  }

  /** Reads the definition in the member, and begins to sync its objects. */
  async #reconcileApi(name: string, signal: AbortSignal): Promise<ReconcileResult> {
    const row = this.#apis.get(name)
    if (row === undefined) return {}
    const read = await this.#readDefinition(name, row.api, signal)
    this.#options.seen(
      name,
      'problem' in read ? read : { spec: read.spec, ...(read.approval && { approval: read.approval }) },
    )
    if (!('problem' in read)) {
      const known = this.#synced.get(name)
      const { version, isNamespaced } = read
      if (known?.gvr.version !== version || known.isNamespaced !== isNamespaced) {
        await known?.[Symbol.asyncDispose]()
        this.#synced.delete(name)
        const objects = await this.#options.objectsOf(row.api, signal)
        const { group, resource } = row.api
        const gvr = { group, resource, version }
        const enqueue = (key: string): void => this.#queue.add(`object ${name} ${key}`)
        const life = this.#life.signal
        const synced = await syncApi(this.#context, { gvr, isNamespaced, objects, enqueue, life }, signal)
        this.#synced.set(name, synced)
        this.#stack.defer(
          synced.copies.onChange(({ after }) => {
            if (after === undefined) this.#reportSoon()
          }),
        )
      }
    }
    this.#reportSoon()
    return {}
  }

  async #readDefinition(
    name: string,
    api: Readonly<ExportedApi>,
    signal: AbortSignal,
  ): Promise<ReadDefinition | { readonly problem: string }> {
    const { downstream } = this.#context
    try {
      const live = await downstream.tryGet<KubeObject>(definitionsGvr, { name }, { signal })
      if (live === undefined) return { problem: `the member has no CustomResourceDefinition ${name}` }
      const read = definitionOf(live)
      if ('problem' in read) return read
      const { group, resource } = api
      await downstream.list({ group, resource, version: read.version }, { limit: 1, metadataOnly: true, signal })
      return read
    } catch (error) {
      if (isStatusError(error, 'Forbidden'))
        return { problem: `kcp has no rights for ${name} in the member: join it again with --export ${name}` }
      throw error
    }
  }

  /** Sends one report for many reconciles, because a report reads everything that was noted. */
  #reportSoon(): void {
    this.#queue.addAfter('report', reportMs)
  }

  /** Tells of which withdrawn APIs the member has no copy any more. */
  #report(): void {
    const withdrawn = [...this.#apis]
      .filter(([name, { isWithdrawn }]) => isWithdrawn && isEmpty(this.#synced.get(name)?.copies.store.keys() ?? []))
      .map(([name]) => name)
    if (this.#reported === JSON.stringify(withdrawn)) return
    this.#reported = JSON.stringify(withdrawn)
    this.#options.withdrawn(withdrawn)
  }
}

interface ReadDefinition extends Exclude<SeenDefinition, { problem: string }> {
  /** The version in which the member is asked for its objects. */
  readonly version: string
  readonly isNamespaced: boolean
}

const approvalAnnotation = 'api-approved.kubernetes.io'

/** The part of a definition that concerns logical clusters. */
function definitionOf({ metadata, spec }: KubeObject): ReadDefinition | { readonly problem: string } {
  const { group, scope, names, versions, conversion } = spec as Record<string, JsonObject[string]>
  const approval = metadata.annotations?.[approvalAnnotation]
  const version = storedVersion(spec as JsonObject)
  if (isDeeperThan(spec, maxDefinitionDepth))
    return { problem: `the schema of ${metadata.name ?? ''} is nested too deeply` }
  if (version === undefined) return { problem: `${metadata.name ?? ''} has no version that is stored and served` }
  const kept: JsonObject = {}
  for (const [name, value] of Object.entries({ group, scope, names, versions, conversion }))
    if (value !== undefined) kept[name] = value
  return { spec: kept, version, isNamespaced: scope !== 'Cluster', ...(approval !== undefined && { approval }) }
}

function isEmpty(items: Iterable<unknown>): boolean {
  for (const _ of items) return false
  return true
}
