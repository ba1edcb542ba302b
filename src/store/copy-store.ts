// Copies all objects of a store that nobody writes into another one, and compares both.
import {
  isStoreError,
  StoreError,
  type ListResult,
  type ObjectKey,
  type Store,
  type StoredObject,
  type Waiting,
} from './store.ts'

const pageSize = 500
const createsAtATime = 64

/** Objects and bytes of values so far. */
export interface Copied {
  readonly objects: number
  readonly bytes: number
}

/**
 * Copies and compares. Objects that are there already with the same value stay, so that a copy that was broken off is
 * continued by another call. Rejects StoreError if the target has an object that the source does not have so.
 */
export async function copyStore(
  { from, to }: { readonly from: Store; readonly to: Store },
  { signal, tell }: Waiting & { readonly tell: (copied: Copied) => void },
): Promise<Copied> {
  let [objects, bytes] = [0, 0]
  for await (const { items } of pages(from, signal)) {
    for (let at = 0; at < items.length; at += createsAtATime)
      await Promise.all(items.slice(at, at + createsAtATime).map((object) => put(to, object, signal)))
    objects += items.length
    for (const { value } of items) bytes += value.length
    tell({ objects, bytes })
  }
  await compare(from, to, signal)
  return { objects, bytes }
}

async function put(to: Store, { key, value }: StoredObject, signal: AbortSignal): Promise<void> {
  try {
    await to.create(key, value, { signal })
  } catch (error) {
    // The comparison at the end tells whether it is the same.
    if (!isStoreError(error, 'KeyExists')) throw error
  }
}

async function compare(from: Store, to: Store, signal: AbortSignal): Promise<void> {
  const there = objectsOf(to, signal)
  for await (const { items } of pages(from, signal))
    for (const { key, value } of items) {
      const found = (await there.next()).value
      if (found === undefined || !isSameKey(found.key, key) || Buffer.compare(found.value, value) !== 0)
        throw differs(found?.key ?? key)
    }
  const more = (await there.next()).value
  if (more !== undefined) throw differs(more.key)
}

function differs({ resource, namespace, name }: ObjectKey): StoreError {
  const place = namespace === '' ? '' : ` in namespace "${namespace}"`
  return new StoreError(
    'KeyExists',
    `the target differs at "${resource}/${name}"${place}: it was written by somebody else`,
  )
}

async function* objectsOf(store: Store, signal: AbortSignal): AsyncGenerator<StoredObject, undefined> {
  for await (const { items } of pages(store, signal)) yield* items
  return undefined
}

async function* pages(store: Store, signal: AbortSignal): AsyncGenerator<ListResult> {
  let after: ObjectKey | undefined
  do {
    const page = await store.list({}, { signal, limit: pageSize, ...(after && { after }) })
    yield page
    after = page.next
  } while (after !== undefined)
}

function isSameKey(a: ObjectKey, b: ObjectKey): boolean {
  return a.cluster === b.cluster && a.resource === b.resource && a.namespace === b.namespace && a.name === b.name
}
