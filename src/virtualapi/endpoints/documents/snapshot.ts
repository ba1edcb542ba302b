// `/snapshot` of a logical cluster: GET gives all its objects at one revision, POST puts objects exactly as they are.
import { groupResourceText, isJsonObject } from '#apimachinery/meta/index.ts'
import {
  alreadyExists,
  badRequest,
  conflict,
  forbidden,
  invalid,
  methodNotServed,
  type StatusCause,
} from '#apimachinery/status/index.ts'
import { logicalClusters } from '#crds/index.ts'
import { timestamp, yieldEvery } from '#async/index.ts'
import {
  compressed,
  tarOf,
  tarType,
  type InitialObjects,
  type ObjectPlace,
  type ObjectsToPut,
  type PutCounts,
} from '#snapshot/index.ts'
import { isStoreError } from '#store/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import { programVersion } from '#telemetry/index.ts'
import { decodeObjects, maxObjectsBytes } from '#virtualapi/codec/read-object.ts'
import { jsonDocument } from '#virtualapi/codec/responses.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { requireReceiving } from '#virtualapi/endpoints/forwarded/transfer-marks.ts'
import { encodeObject, stampRevision } from '#virtualapi/kinds/resources/object-bytes.ts'
import { metaCauses } from '#virtualapi/kinds/resources/object-meta.ts'
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ApiResponse, Exchange, StreamResponse } from '#virtualapi/request/exchange.ts'
import { fromStoreError } from '#virtualapi/write/registry/store-errors.ts'

const maxStallMs = 60_000

export async function snapshot(
  exchange: Exchange,
  cluster: LogicalCluster,
  dependencies: EndpointDependencies,
): Promise<ApiResponse> {
  const { method } = exchange.info
  if (method === 'GET' && exchange.info.query.get('only') === 'initial')
    return initialObjects(exchange, cluster, dependencies)
  if (method === 'GET') return takeSnapshot(exchange, cluster, dependencies)
  if (method === 'POST') return putObjects(exchange, cluster, dependencies)
  throw methodNotServed()
}

/** The objects with which the logical cluster began and that nobody has changed. */
async function initialObjects(
  { signal }: Exchange,
  cluster: LogicalCluster,
  { watchCache, catalog }: EndpointDependencies,
): Promise<ApiResponse> {
  const objects = await watchCache.cluster(cluster.id, { signal })
  await catalog.load(objects, signal)
  const initial = [...servedResources(objects, catalog)].flatMap((resource) =>
    objects
      .list({ resource })
      .filter(({ base }) => base)
      .map((entry) => ({ ...placeOf(entry), uid: entry.facts.uid })),
  )
  return jsonDocument({ initial } satisfies InitialObjects)
}

async function takeSnapshot(
  exchange: Exchange,
  cluster: LogicalCluster,
  { watchCache, catalog, clock }: EndpointDependencies,
): Promise<StreamResponse> {
  const { signal } = exchange
  const objects = await watchCache.cluster(cluster.id, { signal })
  const giveWay = givingWay(exchange)
  await catalog.compileInTurns(objects, async () => giveWay(), signal)
  // From here to the end of this function nothing else runs, so all entries are of one revision; they never change.
  const byResource = new Map<string, readonly Entry[]>()
  const deleted: ObjectPlace[] = []
  const served = servedResources(objects, catalog)
  for (const [resource, entries] of objects.written()) if (!served.has(resource)) byResource.set(resource, [...entries])
  for (const resource of served) {
    byResource.set(resource, objects.list({ resource }))
    for (const { namespace, name } of objects.hidden(resource)) deleted.push({ resource, namespace, name })
  }
  const parts = [...byResource]
    .filter(([, entries]) => entries.length > 0)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([resource, entries]) => ({
      resource,
      count: entries.length,
      bytes: entries.reduce((sum, { size }) => sum + size, 0),
      objects: bytesOf(entries),
    }))
  const { name, id, uid } = cluster
  const tar = tarOf(
    {
      takenAt: timestamp(clock.now()),
      program: programVersion,
      logicalCluster: { name, id, uid },
      revision: String(objects.revision()),
      initial: [...byResource.values()]
        .flat()
        .filter(({ base }) => base)
        .map(placeOf),
      deleted,
    },
    parts,
    giveWay,
  )
  const isPlain = exchange.header('accept') === tarType
  return {
    kind: 'stream',
    status: 200,
    headers: isPlain
      ? { 'content-type': tarType }
      : { 'content-type': 'application/zstd', 'content-disposition': `attachment; filename="${name}.kcp.tar.zst"` },
    chunks: isPlain ? tar : compressed(tar),
    maxStallMs,
  }
}

/**
 * Lets other work run between two parts of a long response: a turn of the flow. Requests of the installation and of its
 * own controllers have no turns; they give way every 2 ms.
 */
export function givingWay(exchange: Exchange): () => Promise<void> | undefined {
  const pause = yieldEvery(2, exchange.signal)
  return () => exchange.turn() ?? pause()
}

function* bytesOf(entries: readonly Entry[]): Generator<Uint8Array> {
  for (const { bytes } of entries) yield bytes
}

function placeOf({ key: { resource, namespace, name } }: Entry): ObjectPlace {
  return { resource, namespace, name }
}

/** The stored resources that the logical cluster serves, each once. */
export function servedResources(
  objects: ClusterObjects,
  catalog: EndpointDependencies['catalog'],
): ReadonlySet<string> {
  return new Set(catalog.all(objects).map(groupResourceText))
}

/**
 * Puts objects into a logical cluster, as the installation: no admission, no defaults. Throws 403 for everybody else,
 * 422 for an object that its kind does not allow. Putting the same objects again changes nothing.
 */
async function putObjects(
  exchange: Exchange,
  cluster: LogicalCluster,
  dependencies: EndpointDependencies,
): Promise<ApiResponse> {
  const { user, signal } = exchange
  if (user.realm.kind !== 'installation')
    throw forbidden(
      logicalClusters,
      cluster.name,
      'only admins of the installation restore snapshots: kcp snapshot restore',
    )
  const value = decodeObjects(await exchange.request.body({ maxBytes: maxObjectsBytes }))
  const { objects: items, deletions, validate, onlyNew, whileFilling, run } = bodyOf(value)
  const objects = await dependencies.watchCache.cluster(cluster.id, { signal })
  if (run !== undefined) requireReceiving(cluster, objects, run)
  await dependencies.catalog.load(objects, signal)
  if (validate !== false)
    for (const item of items)
      requireValid(item, objects, { exchange, cluster, dependencies, kindOnly: validate === 'kind' })
  // Asked without a wait before the writes: it may have been opened to its users since the request began.
  if (whileFilling && dependencies.directory.byId(cluster.id)?.filling === undefined)
    throw conflict(logicalClusters, cluster.name, 'it is open to its users already: what they wrote would be replaced')
  const counts = { created: 0, updated: 0, unchanged: 0, deleted: 0 }
  const put = async ({ resource, object }: Item): Promise<void> => {
    counts[await putObject(objects, { resource, object }, { onlyNew, signal })]++
  }
  await Promise.all(items.map(put))
  for (const place of deletions) if (await deleteObject(objects, place, signal)) counts.deleted++
  return jsonDocument(counts satisfies PutCounts)
}

type Item = NonNullable<ObjectsToPut['objects']>[number]

function bodyOf(value: unknown): Required<Omit<ObjectsToPut, 'run'>> & Pick<ObjectsToPut, 'run'> {
  if (!isJsonObject(value)) throw badRequest('the body must be a JSON object')
  const { objects = [], deletions = [], validate = false, onlyNew = false, whileFilling = false, run } = value
  if (!Array.isArray(objects) || !objects.every(isItem))
    throw badRequest(
      'objects must be a list of {resource, object}, and each object has a kind, an apiVersion, a name and a uid',
    )
  if (!Array.isArray(deletions) || !deletions.every(isPlace))
    throw badRequest('deletions must be a list of {resource, namespace, name}')
  return {
    objects: objects as unknown as readonly Item[],
    deletions: deletions as unknown as readonly ObjectPlace[],
    validate: validate === true || validate === 'kind' ? validate : false,
    onlyNew: onlyNew === true,
    whileFilling: whileFilling === true,
    ...(typeof run === 'string' && { run }),
  }
}

const resourceName = /^[a-z0-9-]+(\.[a-z0-9.-]+)?$/

function isItem(value: unknown): boolean {
  if (!isJsonObject(value) || !isJsonObject(value['object'])) return false
  const { kind, apiVersion, metadata } = value['object']
  const texts = isJsonObject(metadata) ? [kind, apiVersion, metadata['name'], metadata['uid']] : [undefined]
  const isNamed = typeof value['resource'] === 'string' && resourceName.test(value['resource'])
  return isNamed && texts.every((text) => typeof text === 'string' && text !== '')
}

function isPlace(value: unknown): boolean {
  if (!isJsonObject(value)) return false
  const { resource, namespace, name } = value
  return typeof resource === 'string' && typeof namespace === 'string' && typeof name === 'string'
}

interface Validating {
  readonly exchange: Exchange
  readonly cluster: LogicalCluster
  readonly dependencies: EndpointDependencies
  /** True: only the kind must be served. */
  readonly kindOnly: boolean
}

/** Throws 422 for an object that its kind does not allow, or of a kind that the logical cluster does not serve. */
function requireValid(
  { resource: text, object }: Item,
  objects: ClusterObjects,
  { exchange, cluster, dependencies: { catalog, clock, allocationFor }, kindOnly }: Validating,
): void {
  const [resource, group] = splitOnce(text)
  const { apiVersion, kind, metadata } = object
  const [version = ''] = apiVersion.split('/').slice(-1)
  const name = metadata.name ?? ''
  const refuse = (causes: StatusCause[]): never => {
    throw invalid({ group, kind }, name, causes)
  }
  const definition = catalog.find(objects, { group, version, resource })
  const isGroup = (apiVersion.includes('/') ? apiVersion.split('/')[0] : '') === group
  if (definition === undefined || !isGroup || definition.info.kind !== kind)
    return refuse([
      {
        field: 'apiVersion',
        reason: 'FieldValueInvalid',
        message: `Invalid value: ${JSON.stringify(apiVersion)}: ${kind} of ${text} is not served in this logical cluster`,
      },
    ])
  if (kindOnly) return
  const context: RequestContext = {
    cluster,
    objects,
    user: exchange.user,
    dryRun: true,
    fieldManager: '',
    warnings: [],
    work: exchange.work,
    now: clock.now(),
    turn: () => exchange.turn(),
    allocationFor,
  }
  const causes = [...metaCauses(object, definition), ...(definition.strategy.validateCreate?.(object, context) ?? [])]
  if (causes.length > 0) refuse(causes)
}

function splitOnce(text: string): [string, string] {
  const at = text.indexOf('.')
  return at < 0 ? [text, ''] : [text.slice(0, at), text.slice(at + 1)]
}

/** Tries after writes of others; controllers of the logical cluster are at work meanwhile. */
const tries = 20

async function putObject(
  objects: ClusterObjects,
  { resource, object }: Item,
  { onlyNew, signal }: { readonly onlyNew: boolean; readonly signal: AbortSignal },
): Promise<'created' | 'updated' | 'unchanged'> {
  const { namespace = '', name = '', uid } = object.metadata
  const key = { resource, namespace, name }
  const value = encodeObject(object)
  for (let attempt = 1; ; attempt++) {
    const now = objects.get(resource, namespace, name)
    try {
      if (now === undefined) {
        await objects.create(key, value, { signal })
        return 'created'
      }
      if (onlyNew) throw alreadyExists(groupResourceOf(resource), name)
      if (stampRevision(value, now.revision).equals(now.bytes)) return 'unchanged'
      if (now.facts.uid === uid) {
        await objects.update(key, value, { ifRevision: now.revision, signal })
        return 'updated'
      }
      // Another object has the place: clients must see that it goes.
      await objects.delete(key, { ifRevision: now.revision, signal })
    } catch (error) {
      const lost = ['KeyExists', 'KeyMissing', 'RevisionMismatch'].some(
        (code) => isStoreError(error) && error.code === code,
      )
      if (!lost || attempt >= tries) throw fromStoreError(error, groupResourceOf(resource), name)
    }
  }
}

async function deleteObject(objects: ClusterObjects, place: ObjectPlace, signal: AbortSignal): Promise<boolean> {
  const { resource, namespace, name } = place
  for (let attempt = 1; ; attempt++) {
    const now = objects.get(resource, namespace, name)
    if (now === undefined) return false
    try {
      await objects.delete({ resource, namespace, name }, { ifRevision: now.revision, signal })
      return true
    } catch (error) {
      const lost = isStoreError(error, 'RevisionMismatch') || isStoreError(error, 'KeyMissing')
      if (!lost || attempt >= tries) throw fromStoreError(error, groupResourceOf(resource), name)
    }
  }
}

function groupResourceOf(text: string): { group: string; resource: string } {
  const [resource, group] = splitOnce(text)
  return { resource, group }
}
