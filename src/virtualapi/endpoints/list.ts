// GET of a collection: entries from memory, selected, paged, joined as bytes.
import type { Revision } from '../../apimachinery/meta/index.ts'
import type { Entry } from '../../store/hub/index.ts'
import { jsonPieces } from '../codec/answers.ts'
import type { ListMeta } from '../codec/list-pieces.ts'
import { viewOf, type ObjectView } from '../codec/representations.ts'
import type { Answer } from '../exchange/exchange.ts'
import type { EndpointCall } from './endpoint-call.ts'
import type { EndpointParts } from './parts.ts'
import { listOptionsOf, type ListOptions } from './list-options.ts'
import {
  encodeToken,
  expiredList,
  expiredToken,
  listPosition,
  waitForRevision,
  type ListPosition,
} from './read-position.ts'
import { selectionOf, type Selection } from './selection.ts'

export async function listObjects(call: EndpointCall<EndpointParts>): Promise<Answer> {
  const { definition, representation, query, target } = call
  const { entries, metadata } = await readPage(call, listOptionsOf(query, 'list'))
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  return listAnswer(view, entries, metadata)
}

/** What a list finds, and what it says of it. Throws 400 for selectors before it does for positions. */
export async function readPage(
  call: EndpointCall<EndpointParts>,
  options: ListOptions,
): Promise<{ readonly entries: readonly Entry[]; readonly metadata: ListMeta }> {
  const { definition, query, parts, objects, request } = call
  const selection = selectionOf(query, definition)
  const position = listPosition(options)
  if (position.notOlderThan !== undefined) await waitForRevision(parts, position.notOlderThan, call.exchange.signal)
  const revision = position.at ?? objects.revision()
  const scope = {
    resource: definition.storageKey,
    ...(request.namespace === '' ? {} : { namespace: request.namespace }),
  }
  const all = entriesAt(call, scope, position, selection)
  const page = selection.everything
    ? paged(all, selection, position)
    : paged(await selected(call, all, selection, position), { ...selection, matches: () => true }, position)
  return { entries: page.entries, metadata: listMeta(page, revision, selection) }
}

/** The entries as a list, large ones in pieces. */
export function listAnswer(view: ObjectView, entries: readonly Pick<Entry, 'bytes'>[], metadata: ListMeta): Answer {
  let about = 0
  const items = entries.map(({ bytes }) => {
    about += bytes.length
    return bytes
  })
  return jsonPieces(view.list(items, metadata), about)
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
  // `kubectl wait` and `get -w` list one name: that is a look-up, where it is clear in which namespace to look.
  if (selection.name !== undefined && (request.namespace !== '' || !definition.info.namespaced)) {
    const entry = objects.get(definition.storageKey, request.namespace, selection.name)
    return entry === undefined ? [] : [entry]
  }
  return objects.list(scope)
}

/** Objects looked into at a time: the first look at one decodes it. */
const looksAtATime = 128

/** Those from the position on that match, one more than the limit where there are more. */
async function selected(
  { exchange }: EndpointCall,
  all: readonly Entry[],
  selection: Selection,
  { after, limit }: ListPosition,
): Promise<readonly Entry[]> {
  const found: Entry[] = []
  for (let i = after === undefined ? 0 : firstAfter(all, after); i < all.length; i++) {
    const entry = all[i]
    if (entry !== undefined && selection.matches(entry)) found.push(entry)
    if (limit > 0 && found.length > limit) break
    if (i % looksAtATime === looksAtATime - 1) await exchange.turn()
  }
  return found
}

interface Page {
  readonly entries: readonly Entry[]
  /** Key to go on after, where the limit cut the list. */
  readonly next: string | undefined
  readonly remaining: number
}

/** The entries that match, from the position on, at most `limit`. */
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

/** ListMeta of a page: where the next begins, and how many are left where that is known without looking. */
function listMeta({ next, remaining }: Page, revision: Revision, { everything }: Selection): ListMeta {
  const metadata: ListMeta = { resourceVersion: String(revision) }
  if (next === undefined) return metadata
  metadata.continue = encodeToken(revision, next)
  if (everything) metadata.remainingItemCount = remaining
  return metadata
}
