// Gives logical clusters the APIs that members export: one definition for all members that offer the API there. A key
// is one API in one logical cluster.
import { isSubset, parseJsonText } from '#apimachinery/json/index.ts'
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError, tolerate } from '#apimachinery/status/index.ts'
import { systemClock, timestamp } from '#async/index.ts'
import { clusterInKey, keyFor, parseKey, type DeepReadonly, type Informer, type KubeClient } from '#client/index.ts'
import {
  contentHash,
  definitionName,
  droppedFieldsAnnotation,
  exportedByAnnotation,
  exportedFromLabel,
  heldChangeAnnotation,
  logicalClusters,
  memberClusters,
  tryExportedApi,
  unchangingHash,
  type LogicalCluster,
  type MemberCluster,
} from '#crds/index.ts'
import type { OperatorContext, OperatorController } from '#operator/framework/operator-context.ts'
import { recordEvent, type EventText } from '#operator/framework/record-event.ts'
import { createKeyQueue, runController, type KeyQueue, type ReconcileResult } from '#reconcile/index.ts'
import { admitsCluster, onAdmission } from './admission.ts'
import { apiReports, type Outcome } from './api-reports.ts'
import { cutOf } from './cut.ts'
import { definitionsGvr, type MemberApis } from './member-apis.ts'
import { membersOf, negotiate, storageOf, versionsOf, type ApiCandidate, type Negotiated } from './negotiate.ts'

const fieldManager = 'kcp-exports'
/** How often a logical cluster with a definition of its own, or one that refuses, is asked again. */
const againSeconds = 30
/** Changes within this time are reported, or lead to another look at what is held, together. */
const collectMs = 500
const workers = 4
const reportKey = 'report'
/** The annotations that this controller writes. */
const ours = [exportedByAnnotation, droppedFieldsAnnotation, heldChangeAnnotation] as const

/** Negotiates the definitions of exported APIs. */
export function exportedApisController(apis: MemberApis): OperatorController {
  return {
    name: 'exported-apis',
    async run(context, { signal, started }) {
      using queue = createKeyQueue({ maxMs: 30_000, fairnessKey: clusterInKey })
      const { informers, log } = context
      const members = informers.of<MemberCluster>(memberClusters)
      const clusters = informers.of<LogicalCluster>(logicalClusters)
      await Promise.all([members, clusters].map((informer) => informer.synced(signal)))
      started()
      // Without exported APIs, nothing in logical clusters is read.
      await firstExport(members, signal)
      const definitions = apis.definitions(context, signal)
      const negotiation = new Negotiation({ apis, context, members, clusters, definitions, queue, signal })
      const ends = negotiation.follow()
      try {
        await definitions.synced(signal)
        const reconcile = (key: string, life: AbortSignal): Promise<ReconcileResult> => negotiation.reconcile(key, life)
        await runController({ name: 'exported-apis', queue, workers, reconcile, log, signal })
      } finally {
        for (const end of ends) end()
      }
    },
  }
}

/** Resolves when a member exports something, or has done so. */
async function firstExport(members: Informer<MemberCluster>, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  const { promise, resolve, reject } = Promise.withResolvers<undefined>()
  const abort = (): void => reject(signal.reason as Error)
  signal.addEventListener('abort', abort, { once: true })
  const end = members.onChange(({ after }) => {
    const { spec, status } = after ?? {}
    if ((spec?.exportedAPIs ?? []).length + (status?.exportedAPIs ?? []).length > 0) resolve(undefined)
  })
  try {
    await promise
  } finally {
    end()
    signal.removeEventListener('abort', abort)
  }
}

interface Dependencies {
  readonly apis: MemberApis
  readonly context: OperatorContext
  readonly members: Informer<MemberCluster>
  readonly clusters: Informer<LogicalCluster>
  readonly definitions: Informer<KubeObject>
  readonly queue: KeyQueue
  readonly signal: AbortSignal
}

class Negotiation {
  readonly #with: Dependencies
  readonly #outcomes = new Map<string, Outcome>()
  /** Keys whose change is held: objects of their logical cluster decide. */
  readonly #held = new Set<string>()
  /** `MEMBER NAME HASH` of the definitions that the server refuses, with its message. */
  readonly #refused = new Map<string, string>()
  readonly #reported = new Set<string>()

  constructor(dependencies: Dependencies) {
    this.#with = dependencies
  }

  follow(): (() => void)[] {
    const { apis, members, clusters, definitions, queue } = this.#with
    return [
      apis.onDefinition((name) => this.#enqueueApi(name)),
      definitions.onChange(({ key }) => queue.add(key)),
      members.onChange(({ key, before, after }) => {
        if (factsOf(before) === factsOf(after)) return
        for (const name of new Set([before, after].flatMap(exportedNames))) this.#enqueueApi(name)
        if (after === undefined) {
          apis.forget(key)
          this.#reported.delete(key)
        }
      }),
      onAdmission(clusters, (cluster) => {
        for (const name of this.#exported()) queue.add(keyFor({ cluster, name }))
      }),
      apis.onObjects(({ api, informer }) => {
        const name = definitionName(api)
        informer.onChange(({ key }) => {
          const held = keyFor({ cluster: clusterInKey(key), name })
          if (this.#held.has(held)) queue.addAfter(held, collectMs)
        })
      }),
    ]
  }

  /** Names of the definitions that some member exports. */
  #exported(): Set<string> {
    return new Set(this.#with.members.store.list().flatMap(exportedNames))
  }

  #enqueueApi(name: string): void {
    const { clusters, queue } = this.#with
    for (const { metadata } of clusters.store.list()) queue.add(keyFor({ cluster: metadata.name, name }))
  }

  async reconcile(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    if (key === reportKey) {
      this.#report()
      return {}
    }
    this.#held.delete(key)
    const result = await this.#reconcileApi(key, signal)
    this.#with.queue.addAfter(reportKey, collectMs)
    return result
  }

  async #reconcileApi(key: string, signal: AbortSignal): Promise<ReconcileResult> {
    const { cluster = '', name } = parseKey(key)
    const { definitions, apis, context } = this.#with
    const api = tryExportedApi(name)
    const owner = this.#with.clusters.store.get(cluster)
    const candidates = owner === undefined || api === undefined ? [] : this.#candidates(name, owner)
    const shown = definitions.store.get(key) as KubeObject | undefined
    if (candidates.length === 0 || api === undefined) {
      this.#outcomes.delete(key)
      if (shown !== undefined && owner?.metadata.deletionTimestamp === undefined)
        await this.#withdraw(cluster, shown, signal)
      return {}
    }
    const objects = apis.objectsOf(api, context, this.#with.signal)
    await objects.informer.synced(signal)
    const spec = shown?.['spec'] as JsonObject | undefined
    const cut = (next: JsonObject) => cutOf(objects.groups.of(cluster), spec ?? {}, next)
    const found = negotiate({ name, candidates, shown, cut })
    if (found.held !== undefined) this.#held.add(key)
    const problem = await this.#show({ cluster, name, shown, found }, signal)
    this.#outcomes.set(key, { cluster, name, ...found, ...(problem !== undefined && { problem }) })
    return problem === undefined ? {} : { requeueAfterSeconds: againSeconds }
  }

  /** The members that export the API to the logical cluster; the oldest first. */
  #candidates(name: string, owner: DeepReadonly<LogicalCluster>): ApiCandidate[] {
    const members = this.#exporting(name, owner)
    const together = this.#together(name, members)
    return members.map((member) => {
      const definition = this.#with.apis.definitionOf(member, name)
      const key = refusalKey(member, name, definition)
      const refused = this.#refused.get(key) ?? this.#refused.get(`${key} of ${together}`)
      return { name: member, definition: refused === undefined ? definition : { problem: refused } }
    })
  }

  #exporting(name: string, { metadata }: DeepReadonly<LogicalCluster>): string[] {
    if (metadata.deletionTimestamp !== undefined) return []
    return this.#with.members.store
      .list()
      .filter(
        (member) => exportedNames(member).includes(name) && admitsCluster(member, metadata.name, this.#with.clusters),
      )
      .sort((a, b) => (ageOf(a) < ageOf(b) ? -1 : 1))
      .map((member) => member.metadata.name)
  }

  /** Names the definitions of all these members: what the server refuses of them together may be right with others. */
  #together(name: string, members: readonly string[]): string {
    return contentHash(members.map((member) => refusalKey(member, name, this.#with.apis.definitionOf(member, name))))
  }

  /** Writes the definition. Returns why the logical cluster does not have it. */
  async #show({ cluster, name, shown, found }: Showing, signal: AbortSignal): Promise<string | undefined> {
    const { definition } = found
    if (definition === undefined) return undefined
    const client = this.#with.context.virtual(`/clusters/${cluster}`)
    if (shown === undefined) {
      const own = await client.tryGet<KubeObject>(definitionsGvr, { name }, { signal })
      if (own !== undefined && own.metadata.labels?.[exportedFromLabel] === undefined)
        return `logical cluster "${cluster}" has a CustomResourceDefinition ${name} of its own`
    } else if (isCurrent(shown, definition)) return undefined
    else if (losesStoredVersion(shown, definition)) {
      // No object is stored, or the change would be held: the definition is made again without the version.
      const { uid } = shown.metadata
      await client
        .delete(definitionsGvr, { name }, { ...(uid && { uid }), signal })
        .catch(tolerate('NotFound', 'Conflict'))
      return undefined
    }
    try {
      await client.patch(definitionsGvr, { name }, 'apply', definition, { fieldManager, force: true, signal })
    } catch (error) {
      if (!isStatusError(error) || error.code >= 500 || error.code === 409 || error.code === 429) throw error
      await this.#findRefused({ cluster, name, shown, found }, { client, message: error.message }, signal)
      return `logical cluster "${cluster}" refuses ${name}: ${error.message.slice(0, 300)}`
    }
    for (const text of tellings(shown, definition)) await this.#tell(cluster, definition, text, signal)
    return undefined
  }

  /**
   * Finds the members whose definitions the server refuses, or the youngest of all if it refuses only what is common
   * to them, and leaves their definitions out from now on.
   */
  async #findRefused(
    { cluster, name, found: { members } }: Showing,
    { client, message }: { readonly client: KubeClient; readonly message: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { apis, queue } = this.#with
    if (members.length < 2) return
    let last = ''
    let isFound = false
    for (const member of members) {
      const definition = apis.definitionOf(member, name)
      if (definition === undefined || 'problem' in definition) continue
      last = refusalKey(member, name, definition)
      const alone = negotiate({
        name,
        candidates: [{ name: member, definition }],
        shown: undefined,
        cut: () => ({ objects: 0, fields: [] }),
      })
      const options = { fieldManager, force: true, dryRun: true, signal }
      try {
        if (alone.definition) await client.patch(definitionsGvr, { name }, 'apply', alone.definition, options)
      } catch (error) {
        if (!isStatusError(error) || error.code >= 500 || error.code === 429) throw error
        this.#refused.set(last, `logical clusters refuse its definition: ${error.message.slice(0, 300)}`)
        isFound = true
      }
    }
    const owner = this.#with.clusters.store.get(cluster)
    if (!isFound && last !== '' && owner !== undefined)
      this.#refused.set(
        `${last} of ${this.#together(name, this.#exporting(name, owner))}`,
        `logical clusters refuse its definition together with the others: ${message.slice(0, 300)}`,
      )
    queue.addAfter(keyFor({ cluster, name }), collectMs)
  }

  /** Without members, the definition goes; where objects are left, it stays as the tenant's own. */
  async #withdraw(cluster: string, shown: KubeObject, signal: AbortSignal): Promise<void> {
    const { apis, context } = this.#with
    const { name = '', uid } = shown.metadata
    const api = tryExportedApi(name)
    const objects = api && apis.objectsOf(api, context, this.#with.signal)
    await objects?.informer.synced(signal)
    const client = context.virtual(`/clusters/${cluster}`)
    const isUsed = objects === undefined || !isEmpty(objects.groups.keysOf(cluster))
    if (!isUsed) {
      await client
        .delete(definitionsGvr, { name }, { ...(uid && { uid }), signal })
        .catch(tolerate('NotFound', 'Conflict'))
      return
    }
    const annotations = Object.fromEntries(ours.map((annotation) => [annotation, null]))
    const metadata = { ...(uid && { uid }), labels: { [exportedFromLabel]: null }, annotations }
    await client
      .patch(definitionsGvr, { name }, 'merge', { metadata }, { signal })
      .catch(tolerate('NotFound', 'Conflict'))
  }

  async #tell(cluster: string, definition: KubeObject, text: EventText, signal: AbortSignal): Promise<void> {
    const { context } = this.#with
    const client = context.virtual(`/clusters/${cluster}`)
    const now = timestamp(systemClock.now())
    await recordEvent(definition, text, { client, component: 'kcp-exported-apis', now, log: context.log }, signal)
  }

  #report(): void {
    const { apis } = this.#with
    const reports = apiReports(this.#outcomes.values())
    for (const member of this.#reported) if (!reports.has(member)) apis.report(member, [], [])
    for (const [member, report] of reports) {
      this.#reported.add(member)
      apis.report(member, report.apis, report.problems)
    }
  }
}

interface Showing {
  readonly cluster: string
  readonly name: string
  readonly shown: KubeObject | undefined
  readonly found: Negotiated
}

function exportedNames(member: DeepReadonly<MemberCluster> | undefined): string[] {
  return (member?.spec?.exportedAPIs ?? []).map(definitionName)
}

/** The fields of a MemberCluster that decide about its APIs, as text. */
function factsOf(member: DeepReadonly<MemberCluster> | undefined): string {
  return JSON.stringify([member?.spec?.exportedAPIs, member?.spec?.logicalClusterSelector, member === undefined])
}

function ageOf({ metadata: { creationTimestamp = '', name } }: DeepReadonly<MemberCluster>): string {
  return `${creationTimestamp} ${name}`
}

function refusalKey(member: string, name: string, definition: unknown): string {
  return `${member} ${name} ${unchangingHash(definition ?? null)}`
}

function isCurrent(shown: KubeObject, definition: KubeObject): boolean {
  const [was, is] = [shown, definition].map(({ metadata }) =>
    ours.map((annotation) => metadata.annotations?.[annotation]),
  )
  return JSON.stringify(was) === JSON.stringify(is) && isSubset(shown, definition)
}

/** Whether the server would refuse the change, because objects may be stored in a version that is not there any more. */
function losesStoredVersion(shown: KubeObject, definition: KubeObject): boolean {
  const { storedVersions = [] } = (shown['status'] ?? {}) as { storedVersions?: string[] }
  const names = versionsOf(definition['spec'] as JsonObject)
  const stored = storageOf(definition['spec'] as JsonObject)
  return storedVersions.some((version) => version !== stored && !names.has(version))
}

/** Events for the tenant about a change of the definition. */
function tellings(shown: KubeObject | undefined, definition: KubeObject): EventText[] {
  const newIn = (annotation: string): string | undefined => {
    const [was, is] = [shown, definition].map((one) => one?.metadata.annotations?.[annotation])
    return is !== undefined && is !== was ? is : undefined
  }
  const told: EventText[] = []
  const held = newIn(heldChangeAnnotation)
  if (held !== undefined) told.push({ type: 'Warning', reason: 'ChangeHeld', message: held.slice(0, 1000) })
  const dropped = newIn(droppedFieldsAnnotation)
  if (dropped !== undefined) {
    const fields = parseJsonText(dropped) as unknown as { version: string; path: string; members: string[] }[]
    const texts = fields.map(({ version, path, members }) => `${version} ${path} (${members.join(', ')})`)
    const message = `fields that some member clusters lack: ${texts.join('; ')}`
    told.push({ type: 'Normal', reason: 'FieldsDropped', message: message.slice(0, 1000) })
  }
  const [was, is] = [membersOf(shown).join(', '), membersOf(definition).join(', ')]
  if (shown !== undefined && was !== is)
    told.push({
      type: 'Normal',
      reason: 'MembersChanged',
      message: `objects may run in member clusters ${is || 'none'}`,
    })
  return told
}

function isEmpty(items: Iterable<unknown>): boolean {
  for (const _ of items) return false
  return true
}
