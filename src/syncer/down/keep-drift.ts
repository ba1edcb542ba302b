// Writes of a copy that leave alone what others have changed in it: server-side apply without force, without the fields
// that others own with other values, and without those that others have removed. What a member says of these fields is
// told, and nothing else follows from it.
import { cloneJson, isJsonObject, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isStatusError, type StatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { appliedAnnotation, contentHash, syncerFieldManager } from '#crds/index.ts'
import type { DriftedField } from '#syncer/context/drifts.ts'
import type { CachedObject } from '#syncer/context/resources.ts'

/** More fields than a person changes: then nothing is written. */
const maxConflicts = 50
/** Each attempt learns of the conflicts of one version of the copy. */
const maxAttempts = 4

type Patching = Pick<KubeClient, 'patch'>

export interface KeptWrite {
  readonly gvr: GroupVersionResource
  readonly ref: { readonly namespace?: string; readonly name: string }
  readonly current: CachedObject
  readonly desired: KubeObject
  /** Fields that were found removed, as `writeBesideDrift` has returned them. Default: none. */
  readonly removed?: RemovedFields
  readonly signal: AbortSignal
}

/** By path: the hash of what kcp would write there. Another hash: the tenant has changed the field since. */
export type RemovedFields = ReadonlyMap<string, string>

/**
 * Writes the copy as far as nobody else has changed it. Returns the fields that others have changed. Rejects with
 * StatusError.
 */
export async function writeBesideDrift(client: Patching, write: KeptWrite): Promise<readonly DriftedField[]> {
  const { current, desired, removed = new Map() } = write
  const lacking = lackingPaths(current, desired)
  const gone = lacking.filter(({ isGone, path }) => isGone && !isMark(path))
  const isWrittenAlready = isWritten(current, desired)
  if (isWrittenAlready && !lacking.some(({ path }) => isMark(path))) {
    const changed = await conflictsOf(client, write)
    return [...changed, ...gone.map(({ path, wanted }) => ({ path, wanted }))]
  }
  const kept = isWrittenAlready ? gone : gone.filter(({ path, wanted }) => removed.get(path) === wanted)
  const known = new Map(kept.map(({ path, wanted }) => [path, wanted]))
  const rest = withoutRemoved(current, desired, '', known) as KubeObject
  const changed = await applyRest(client, { ...write, desired: rest })
  return [...changed, ...kept.map(({ path, wanted }) => ({ path, wanted }))]
}

/**
 * The fields that others have changed in a copy that is written by an update (`wasReplaced`), which cannot tell who owns
 * a field. Undefined: the copy has to be written, because the tenant has changed it, or somebody else kcp's marks.
 */
export function driftWithoutOwners(current: CachedObject, desired: KubeObject): readonly DriftedField[] | undefined {
  const lacking = lackingPaths(current, desired)
  if (!isWritten(current, desired) || lacking.some(({ path }) => isMark(path))) return undefined
  return lacking.map(({ path, isGone, wanted }) => ({ path, ...(isGone && { wanted }) }))
}

function isWritten(current: CachedObject, desired: KubeObject): boolean {
  return current.metadata.annotations?.[appliedAnnotation] === desired.metadata.annotations?.[appliedAnnotation]
}

/** What others own with other values, by a dry run. */
async function conflictsOf(client: Patching, { gvr, ref, desired, signal }: KeptWrite): Promise<DriftedField[]> {
  const options = { fieldManager: syncerFieldManager, dryRun: true, signal }
  try {
    await client.patch(gvr, ref, 'apply', desired, options)
    return []
  } catch (error) {
    return conflictsIn(error).filter(({ path }) => !isMark(path))
  }
}

async function applyRest(client: Patching, { gvr, ref, desired, signal }: KeptWrite): Promise<readonly DriftedField[]> {
  const kept = new Map<string, DriftedField>()
  const rest = cloneJson(desired)
  let force = false
  for (let attempt = 1; ; attempt++)
    try {
      await client.patch(gvr, ref, 'apply', rest, { fieldManager: syncerFieldManager, force, signal })
      return [...kept.values()]
    } catch (error) {
      const conflicts = conflictsIn(error)
      if (attempt === maxAttempts) throw error
      const foreign = conflicts.filter(({ path }) => !isMark(path))
      // Only kcp's own marks are left in the conflict: nobody else has a say in them.
      force = foreign.length === 0
      for (const conflict of foreign) {
        if (!removePath(rest, conflict.path)) throw error
        kept.set(conflict.path, conflict)
      }
    }
}

/** The fields in which an apply without force conflicts with other managers; rethrows any other error. */
function conflictsIn(error: unknown): DriftedField[] {
  if (!isStatusError(error, 'Conflict')) throw error
  const causes = causesOf(error).filter(({ reason }) => reason === 'FieldManagerConflict')
  if (causes.length === 0 || causes.length > maxConflicts) throw error
  return causes.map(({ field = '', message = '' }) => ({
    path: field,
    manager: (/"((?:[^"\\]|\\.)*)"/.exec(message)?.[1] ?? '').slice(0, 128),
  }))
}

function causesOf(
  error: StatusError,
): readonly { readonly reason?: string; readonly field?: string; readonly message?: string }[] {
  return error.status.details?.causes ?? []
}

/** Fields whose names only kcp writes. */
function isMark(path: string): boolean {
  return /(^|[."])kcp\.dev\//.test(path)
}

interface Lacking {
  readonly path: string
  /** Whether the copy has nothing there, or a list with fewer items. */
  readonly isGone: boolean
  /** Hash of what kcp would write there. */
  readonly wanted: string
}

/** The fields of the desired copy that the present one has otherwise, or not at all. */
export function lackingPaths(current: CachedObject, desired: KubeObject): Lacking[] {
  const found: Lacking[] = []
  for (const { path, isGone, wanted } of lackingIn(current, desired, '')) {
    found.push({ path, isGone, wanted: contentHash(wanted) })
    if (found.length > maxConflicts) break
  }
  return found
}

interface LackingValue {
  readonly path: string
  readonly isGone: boolean
  readonly wanted: unknown
}

function* lackingIn(actual: unknown, wanted: unknown, path: string): Generator<LackingValue> {
  if (isJsonObject(wanted)) {
    if (Object.keys(wanted).length === 0) return
    if (!isJsonObject(actual)) yield { path, isGone: isNothing(actual), wanted }
    else for (const [key, value] of Object.entries(wanted)) yield* lackingIn(actual[key], value, `${path}.${key}`)
  } else if (Array.isArray(wanted)) {
    const items: readonly unknown[] = Array.isArray(actual) ? actual : []
    if (!areNamed(wanted)) {
      if (items.length !== wanted.length) yield { path, isGone: items.length < wanted.length, wanted }
      else for (const [index, item] of wanted.entries()) yield* lackingIn(items[index], item, `${path}[${index}]`)
      return
    }
    // An item that others have added is theirs.
    for (const item of wanted) yield* lackingIn(sameName(items, item), item, namedPath(path, item))
  } else if (!Object.is(actual, wanted)) yield { path, isGone: actual === undefined, wanted }
}

/** `wanted` without what `actual` lacks at the paths of `removed`, as far as it would still be the same. */
function withoutRemoved(actual: unknown, wanted: unknown, path: string, removed: RemovedFields): unknown {
  const isLeftOut = (there: unknown, value: unknown, at: string): boolean =>
    isNothing(there) && removed.has(at) && removed.get(at) === contentHash(value)
  if (isJsonObject(wanted)) {
    const there = isJsonObject(actual) ? actual : {}
    const entries = Object.entries(wanted)
      .map(([key, value]) => ({ key, value, at: `${path}.${key}` }))
      .filter(({ key, value, at }) => !isLeftOut(there[key], value, at))
      .map(({ key, value, at }) => [key, withoutRemoved(there[key], value, at, removed)] as const)
    return Object.fromEntries(entries)
  }
  if (!Array.isArray(wanted)) return wanted
  const items: readonly unknown[] = Array.isArray(actual) ? actual : []
  if (areNamed(wanted))
    return wanted
      .filter((item) => !isLeftOut(sameName(items, item), item, namedPath(path, item)))
      .map((item) => withoutRemoved(sameName(items, item), item, namedPath(path, item), removed))
  if (items.length === wanted.length)
    return wanted.map((item, index) => withoutRemoved(items[index], item, `${path}[${index}]`, removed))
  if (removed.get(path) !== contentHash(wanted)) return wanted
  return wanted.filter((item) => items.some((one) => lackingIn(one, item, '').next().done))
}

function isNothing(value: unknown): boolean {
  return value === undefined || value === null
}

/** Whether the items are told apart by their names. */
function areNamed(items: readonly unknown[]): boolean {
  const names = new Set(items.map(nameIn))
  return names.size === items.length && !names.has(undefined)
}

function sameName(items: readonly unknown[], item: unknown): unknown {
  return items.find((one) => nameIn(one) === nameIn(item))
}

function namedPath(path: string, item: unknown): string {
  return `${path}[name=${JSON.stringify(nameIn(item))}]`
}

function nameIn(item: unknown): string | undefined {
  const name = isJsonObject(item) ? item['name'] : undefined
  return typeof name === 'string' ? name : undefined
}

/**
 * Removes what a path of a conflict leads to, such as `.spec.containers[name="web"].image`. False if the object has
 * nothing there.
 */
export function removePath(object: unknown, path: string): boolean {
  if (isJsonObject(object)) {
    // Names may contain dots, so the longest name that fits is the one that is meant.
    const [key] = Object.keys(object)
      .filter((name) => path.startsWith(`.${name}`) && ['', '.', '['].includes(path.charAt(name.length + 1)))
      .sort((a, b) => b.length - a.length)
    if (key === undefined) return false
    const rest = path.slice(key.length + 1)
    if (rest !== '') return removePath(object[key], rest)
    return Reflect.deleteProperty(object, key)
  }
  if (!Array.isArray(object)) return false
  const element = /^\[(?:"(?:[^"\\]|\\.)*"|[^\]"])*\]/.exec(path)?.[0]
  const index = element === undefined ? -1 : indexOfElement(object, element.slice(1, -1))
  if (element === undefined || index < 0) return false
  const rest = path.slice(element.length)
  if (rest !== '') return removePath(object[index], rest)
  object.splice(index, 1)
  return true
}

/** `element`: `0`, `="value"`, or `key="value",other=80`. A key that an item lacks has its default. */
function indexOfElement(items: readonly unknown[], element: string): number {
  if (/^\d+$/.test(element)) return Number(element) < items.length ? Number(element) : -1
  const pairs = [...element.matchAll(/([^=,"]*)=("(?:[^"\\]|\\.)*"|[^,]*)(?:,|$)/g)].map(
    ([, key = '', text = '']) => [key, tryJson(text)] as const,
  )
  if (pairs.length === 0) return -1
  return items.findIndex((item) =>
    pairs.every(([key, value]) => {
      if (key === '') return item === value
      return isJsonObject(item) && (item[key] === undefined || item[key] === value)
    }),
  )
}

function tryJson(text: string): unknown {
  try {
    return parseJsonText(text)
  } catch {
    return undefined
  }
}
