// The answers that the controllers of apis.kcp.io need besides the index: the resources of a revision, and what it would
// do to the stored objects of a consumer.
import { setImmediate as nextEventLoopPass } from 'node:timers/promises'
import {
  isJsonObject,
  tryClusterId,
  tryClusterName,
  type JsonObject,
  type JsonValue,
  type KubeObject,
} from '#apimachinery/meta/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { ExportFacts, RevisionResource, SharedApis } from '#reconcile/object-graph/index.ts'
import type { ClusterObjects, Entry, WatchCache } from '#store/watch-cache/index.ts'
import { compareDefinitions } from '#virtualapi/catalog/apiextensions/index.ts'
import { customStrategy } from '#virtualapi/catalog/apiextensions/custom-strategy.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { RequestContext, Strategy } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { BindingSource, RevisionDefinition, RevisionDefinitions } from './binding-source.ts'
import type { SharingIndex } from './sharing-index.ts'

/** Objects that are looked at between two turns of the event loop. */
const objectsPerTurn = 20
/** Objects of one resource that are tried; the first that would break is enough for an answer. */
const maxTried = 10_000

export interface SharedApisDependencies {
  readonly index: SharingIndex
  readonly bindings: BindingSource
  readonly watchCache: Pick<WatchCache, 'cluster'>
  readonly directory: Pick<ClusterDirectory, 'byId' | 'byName' | 'childrenOf' | 'onChange'>
}

export function createSharedApis({ index, bindings, watchCache, directory }: SharedApisDependencies): SharedApis {
  const definitionsOf = (of: ExportFacts, revision: number, signal: AbortSignal) => {
    const id = tryClusterId(of.cluster)
    const clusterName = id === undefined ? undefined : directory.byId(id)?.name
    return clusterName === undefined
      ? undefined
      : bindings.definitionsOf({ clusterName, exportUid: of.uid, revision }, signal)
  }
  const objectsOf = async (cluster: string, signal: AbortSignal): Promise<ClusterObjects | undefined> => {
    const id = tryClusterId(cluster)
    return id === undefined || directory.byId(id) === undefined ? undefined : watchCache.cluster(id, { signal })
  }
  const clusterOf = (cluster: string): LogicalCluster | undefined => {
    const id = tryClusterId(cluster)
    return id === undefined ? undefined : directory.byId(id)
  }
  const parentOf = (cluster: string): string | undefined => {
    const parent = clusterOf(cluster)?.parent
    return parent === undefined ? undefined : directory.byName(parent)?.id
  }
  return {
    hasBinding: (cluster, name) => index.hasBinding(cluster, name),
    markedIn: (cluster) => index.markedIn(cluster),
    allMarked: () => index.allMarked(),
    parentOf,
    childrenOf(cluster) {
      const parent = clusterOf(cluster)
      const children = parent === undefined ? [] : [...directory.childrenOf(parent.name)]
      return children.filter(({ deleting }) => !deleting).map(({ id }) => id)
    },
    followChildren: (listener) =>
      directory.onChange(({ before, after }) => {
        if (after?.parent === undefined || before?.parent === after.parent) return
        const parent = parentOf(after.id)
        if (parent !== undefined) listener(after.id, parent)
      }),
    idOf(text) {
      const name = tryClusterName(text)
      return name === undefined ? undefined : directory.byName(name)?.id
    },
    nameOf: (cluster) => clusterOf(cluster)?.name,
    ready: () => index.ready(),
    exportOf: (binding) => index.exportOf(binding),
    exportByUid: (uid) => index.exportByUid(uid),
    exportsOf: (cluster) => index.exportsOf(cluster),
    bindingsOf: (uid) => index.bindingsOf(uid),
    bindingsTo: (clusterName, name) => index.bindingsTo(clusterName, name),
    follow: (listener) => index.follow(listener),
    async resourcesOf(of, signal) {
      const found = await bindings.definitionsOf(of, signal)
      return found && [...found.values()].map(resourceOf)
    },
    async objections(binding, revision, signal) {
      const facts = index.exportByUid(binding.exportUid ?? '')
      const [before, after] = await Promise.all([
        facts && definitionsOf(facts, binding.revision, signal),
        facts && definitionsOf(facts, revision, signal),
      ])
      const objects = await objectsOf(binding.cluster, signal)
      if (before === undefined || after === undefined || objects === undefined) return []
      return objectionsTo({ before, after, objects, signal })
    },
    async countObjects(cluster, resources, signal) {
      const objects = await objectsOf(cluster, signal)
      return new Map(resources.map((resource) => [resource, objects?.count({ resource }) ?? 0]))
    },
  }
}

function resourceOf({ compiled, schemaName, uid, read }: RevisionDefinition): RevisionResource {
  const { spec } = read()
  const { storageVersion } = compiled
  return { group: spec.group, resource: spec.names.plural, schemaName, uid, storageVersion }
}

interface Change {
  readonly before: RevisionDefinitions
  readonly after: RevisionDefinitions
  readonly objects: ClusterObjects
  readonly signal: AbortSignal
}

async function objectionsTo({ before, after, objects, signal }: Change): Promise<string[]> {
  const found: string[] = []
  for (const [name, was] of before) {
    const is = after.get(name)
    const count = objects.count({ resource: name })
    if (count === 0) continue
    if (is === undefined) found.push(`${name} is not offered any more, and ${count} objects exist`)
    else if (compareDefinitions(was.read(), is.read()).length > 0) {
      const objection = await firstBroken(is, objects.list({ resource: name }), signal)
      if (objection !== undefined) found.push(`${name} ${objection}`)
    }
  }
  return found
}

/** What the first object says that a definition would break; undefined if it breaks none. */
async function firstBroken(
  { compiled }: RevisionDefinition,
  entries: readonly Entry[],
  signal: AbortSignal,
): Promise<string | undefined> {
  const version = [...compiled.versions, ...compiled.unserved].find(
    ({ info }) => info.version === compiled.storageVersion,
  )
  if (version === undefined) return 'has no stored version'
  const strategy = customStrategy(version)
  for (const [i, entry] of entries.slice(0, maxTried).entries()) {
    if (i % objectsPerTurn === objectsPerTurn - 1) await nextEventLoopPass(undefined, { signal })
    const why = whyBroken(strategy, decodeObject(entry.bytes))
    const { namespace, name } = entry.key
    if (why !== undefined) return `"${namespace === '' ? name : `${namespace}/${name}`}": ${why}`
  }
  return undefined
}

function whyBroken(strategy: Strategy, object: KubeObject): string | undefined {
  const context = { work: new WorkBudget(), warnings: [] } as unknown as RequestContext
  const before = structuredClone(object) as unknown as JsonObject
  try {
    strategy.applyDefaults?.(object, context)
    const lost = firstLost(before, object as unknown as JsonObject, '')
    if (lost !== undefined) return `field ${lost} would be lost`
    const [cause] = strategy.validateCreate?.(object, context) ?? []
    return cause === undefined ? undefined : `${cause.field ?? ''}: ${cause.message ?? cause.reason ?? 'invalid'}`
  } catch (error) {
    if (isStatusError(error)) return error.message
    throw error
  }
}

/** The path of the first value of `before` that `after` lacks; metadata aside. */
function firstLost(before: JsonValue, after: JsonValue | undefined, path: string): string | undefined {
  if (after === undefined) return path
  if (Array.isArray(before))
    return before
      .map((value, i) => firstLost(value, Array.isArray(after) ? after[i] : undefined, `${path}[${i}]`))
      .find(Boolean)
  if (!isJsonObject(before)) return undefined
  for (const [field, value] of Object.entries(before)) {
    if (path === '' && field === 'metadata') continue
    const lost = firstLost(
      value,
      isJsonObject(after) ? after[field] : undefined,
      path === '' ? field : `${path}.${field}`,
    )
    if (lost !== undefined) return lost
  }
  return undefined
}
