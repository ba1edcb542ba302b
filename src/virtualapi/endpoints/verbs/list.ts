// GET of a collection: filters and pages the entries in memory, and joins their bytes.
import type { Revision } from '#apimachinery/meta/index.ts'
import type { Entry } from '#store/watch-cache/index.ts'
import { isConverted, requireConvertedSize } from '#virtualapi/write/conversion/conversions.ts'
import { jsonChunks } from '#virtualapi/codec/responses.ts'
import type { ListMeta } from '#virtualapi/codec/list-chunks.ts'
import type { ListItem } from '#virtualapi/codec/list-segments.ts'
import { viewOf, type ObjectView } from '#virtualapi/codec/representations.ts'
import type { ApiResponse, BytesResponse, ChunkedResponse } from '#virtualapi/request/exchange.ts'
import type { EndpointCall } from '#virtualapi/endpoints/call/endpoint-call.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import { listOptionsOf, type ListOptions } from './list-options.ts'
import {
  encodeToken,
  expiredList,
  expiredToken,
  listPosition,
  waitForRevision,
  type ListPosition,
} from './read-position.ts'
import { protobufList } from './protobuf-list.ts'
import { selectionOf, shownSelection, shardInfoOf, type Selection } from './selection.ts'

/** Hints for users who list kinds of ours before any object exists, by resource. */
const firstSteps: ReadonlyMap<string, string> = new Map([
  [
    'logicalclusters',
    'create the first one: kubectl create -f - with kind LogicalCluster, apiVersion kcp.dev/v1alpha1',
  ],
  ['memberclusters', 'register the first one: kcp member join NAME --kubeconfig FILE'],
  ['placements', 'none is needed: workloads run in any member that admits them; kcp placement explain says which'],
])

export async function listObjects(call: EndpointCall<EndpointDependencies>): Promise<ApiResponse> {
  const { definition, exchange, representation, query, target } = call
  const recordsResponse = exchange.audit?.recordsResponse === true
  const { entries, metadata } = await readPage(call, listOptionsOf(query, 'list'))
  if (entries.length === 0 && representation.as === 'Table' && definition.info.group === 'kcp.dev')
    hintAtFirstStep(call)
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  // In v1beta1, a list of metadata has its fields in another order, so it is encoded from the JSON.
  // The audit log records the list as JSON.
  if (representation.format === 'protobuf' && representation.version === undefined && !recordsResponse)
    return protobufList(call, entries, metadata)
  const response = listResponse(view, entries, metadata)
  // An object that a webhook has converted is in memory for this response alone.
  return isConverted(definition) && response.kind === 'chunks' ? { ...response, held: response.about } : response
}

function hintAtFirstStep({ definition, exchange }: EndpointCall<EndpointDependencies>): void {
  const hint = firstSteps.get(definition.info.resource)
  if (hint !== undefined) exchange.warnings.push(hint)
}

/**
 * The entries of a page and its ListMeta. Throws 400 or 410; an invalid selector is reported before an invalid
 * position.
 */
export async function readPage(
  call: EndpointCall<EndpointDependencies>,
  options: ListOptions,
): Promise<{ readonly entries: readonly Entry[]; readonly metadata: ListMeta }> {
  const { definition, query, dependencies, objects, request } = call
  const selection = shownSelection(selectionOf(query, definition), call)
  const position = listPosition(options, { nowMs: dependencies.clock.now() })
  if (position.notOlderThan !== undefined)
    await waitForRevision(dependencies, position.notOlderThan, call.exchange.signal)
  const revision = position.at ?? objects.revision()
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  const all = entriesAt(call, scope, position, selection)
  const page = selection.everything
    ? paged(all, selection, position)
    : paged(await selected(call, all, selection, position), { ...selection, matches: () => true }, position)
  return {
    entries: selection.everything ? await inRequestedVersion(call, page.entries) : page.entries,
    metadata: listMeta(page, revision, { selection, issuedMs: position.issuedMs }),
  }
}

/** The entries in the requested version, made by the conversion webhook of their kind if it has one. */
async function inRequestedVersion(
  { definition, dependencies, objects, exchange }: EndpointCall<EndpointDependencies>,
  entries: readonly Entry[],
): Promise<readonly Entry[]> {
  if (!isConverted(definition)) return entries
  const call = { cluster: objects.cluster, signal: exchange.signal, turn: () => exchange.turn() }
  return await dependencies.conversions.shownAll(definition, entries, call)
}

/** A list of the entries; a large one is encoded in chunks. */
export function listResponse(
  view: ObjectView,
  items: readonly ListItem[],
  metadata: ListMeta,
): BytesResponse | ChunkedResponse {
  let about = 0
  for (const { size } of items) about += size
  return jsonChunks(view.list(items, metadata), about)
}

function entriesAt(
  { objects, definition, request }: EndpointCall,
  scope: { resource: string; namespace?: string },
  { at, after }: ListPosition,
  selection: Selection,
): readonly Entry[] {
  if (at !== undefined && at < objects.revision()) {
    const entries = objects.listAt(scope, at)
    if (entries === undefined) throw after === undefined ? expiredList(at) : expiredToken(after)
    return entries
  }
  // `kubectl wait` and `get -w` list by metadata.name: with a known namespace this is one look-up.
  if (selection.name !== undefined && (request.namespace !== '' || !definition.info.namespaced)) {
    const entry = objects.get(definition.storageKey, request.namespace, selection.name)
    return entry === undefined ? [] : [entry]
  }
  return objects.list(scope)
}

/** How many entries are matched before the event loop is yielded: the first match of an entry may decode it. */
const matchesPerTurn = 128
const tooLong = 'the selector takes too long to be compared with so many objects, list fewer of them at a time (limit)'

/** The matching entries after the position; limit + 1 of them if there are more. */
async function selected(
  call: EndpointCall<EndpointDependencies>,
  all: readonly Entry[],
  selection: Selection,
  { after, limit }: ListPosition,
): Promise<readonly Entry[]> {
  const found: Entry[] = []
  const { exchange, target } = call
  const { work } = target.context
  let held = 0
  for (let i = after === undefined ? 0 : firstAfter(all, after); i < all.length; i += matchesPerTurn) {
    // Entries are converted before they are matched: a webhook may change labels, and selectors apply to the objects
    // that the client sees.
    const shown = await inRequestedVersion(call, all.slice(i, i + matchesPerTurn))
    work.spend(shown.length * (1 + selection.terms), tooLong)
    for (const entry of shown) {
      if (!selection.matches(entry)) continue
      found.push(entry)
      if (isConverted(call.definition)) requireConvertedSize((held += entry.size))
      if (limit > 0 && found.length > limit) return found
    }
    if (i + matchesPerTurn < all.length) await exchange.turn()
  }
  return found
}

interface Page {
  readonly entries: readonly Entry[]
  /** Key of the last entry if the limit cut the list. */
  readonly next: string | undefined
  readonly remaining: number
}

/** The matching entries after the position, at most `limit`. */
function paged(all: readonly Entry[], selection: Selection, { after, limit }: ListPosition): Page {
  const from = after === undefined ? 0 : firstAfter(all, after)
  if (selection.everything && limit === 0)
    return { entries: from === 0 ? all : all.slice(from), next: undefined, remaining: 0 }
  const entries: Entry[] = []
  for (let i = from; i < all.length; i++) {
    const entry = all[i]
    if (entry === undefined || !selection.matches(entry)) continue
    if (limit > 0 && entries.length === limit) {
      const last = entries.at(-1)
      return { entries, next: last === undefined ? undefined : keyText(last), remaining: all.length - i }
    }
    entries.push(entry)
  }
  return { entries, next: undefined, remaining: 0 }
}

function keyText({ key }: Entry): string {
  return `${key.namespace}/${key.name}`
}

function firstAfter(all: readonly Entry[], after: string): number {
  const slash = after.indexOf('/')
  const [namespace, name] = [after.slice(0, slash), after.slice(slash + 1)]
  let [low, high] = [0, all.length]
  while (low < high) {
    const middle = (low + high) >> 1
    const key = all[middle]?.key
    if (key !== undefined && (key.namespace < namespace || (key.namespace === namespace && key.name <= name)))
      low = middle + 1
    else high = middle
  }
  return low
}

/** ListMeta of a page: the continue token, and the number of remaining entries if there is no selector. */
function listMeta(
  { next, remaining }: Page,
  revision: Revision,
  { selection, issuedMs }: { readonly selection: Selection; readonly issuedMs: number },
): ListMeta {
  const metadata: ListMeta = { resourceVersion: String(revision), ...shardInfoOf(selection) }
  if (next === undefined) return metadata
  metadata.continue = encodeToken(revision, next, { issuedMs })
  if (selection.everything) metadata.remainingItemCount = remaining
  return metadata
}
