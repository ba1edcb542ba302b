// JSON patch (RFC 6902) as implemented by the library that kube-apiserver uses: negative indices count from the end, a
// missing `value` is null, `test` of an absent field against null succeeds. All or nothing; arguments are never
// changed.
import { parseJsonText, equalAsWritten } from '#apimachinery/json/index.ts'
import { fieldOf, isJsonObject, putField, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { badRequest, requestEntityTooLarge } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import { jsonEqual } from '#apimachinery/json/json-equal.ts'
import { FailedTest, goKind, undecodablePatch, unprocessablePatch } from './patch-error.ts'

/** More operations than this are refused with 413. */
export const maxJsonPatchOperations = 10_000
/** Maximum bytes that all `copy` operations of a patch may add together: a small patch must not make a huge object. */
export const maxJsonPatchCopyBytes = 3 * 1024 * 1024

/** Items of a list that are moved in one step of the work budget. */
const movedItemsPerStep = 16
const tooLong = 'Request entity too large: The operations of the JSON patch take too long'

type Container = JsonObject | JsonValue[]

/**
 * Returns the patched document, which shares unchanged parts with the arguments. Throws BadRequest for an invalid
 * patch, RequestEntityTooLarge for too many operations or when `work` is spent (each operation on a list is charged for
 * the items that it moves), and Invalid (422) when an operation does not apply.
 */
export function applyJsonPatch(document: JsonValue, patch: JsonValue, work = new WorkBudget()): JsonValue {
  if (!Array.isArray(patch) || !patch.every(isJsonObject)) {
    throw Array.isArray(patch)
      ? undecodablePatch(patch.find((operation) => !isJsonObject(operation)) ?? null, 'handlers.jsonPatchOp')
      : undecodablePatch(patch, '[]handlers.jsonPatchOp')
  }
  for (const operation of patch) requireTexts(operation)
  if (patch.length > maxJsonPatchOperations) {
    const limit = String(maxJsonPatchOperations)
    throw requestEntityTooLarge(
      `Request entity too large: The allowed maximum operations in a JSON patch is ${limit}, got ${String(patch.length)}`,
    )
  }
  const draft = new Draft(document, work)
  for (const operation of patch) draft.apply(operation)
  return draft.root
}

/** Throws 400 unless `op`, `path` and `from` are strings. */
function requireTexts(operation: JsonObject): void {
  for (const field of ['op', 'path', 'from']) {
    const value = fieldOf(operation, field) ?? null
    if (value !== null && typeof value !== 'string')
      throw badRequest(
        `error decoding patch: json: cannot unmarshal ${goKind(value)} into Go struct field jsonPatchOp.${field} of type string`,
      )
  }
}

/** The document being patched: each container is copied before its first change. */
class Draft {
  root: JsonValue
  readonly #owned = new WeakSet<Container>()
  readonly #work: WorkBudget
  #copiedBytes = 0

  constructor(document: JsonValue, work: WorkBudget) {
    this.root = document
    this.#work = work
  }

  apply(operation: JsonObject): void {
    const kind = fieldOf(operation, 'op')
    const value = fieldOf(operation, 'value')
    switch (kind) {
      case 'add':
        this.#put(text(operation, 'path', 'add'), value ?? null, 'add')
        return
      case 'remove':
        this.#remove(text(operation, 'path', 'remove'), 'remove')
        return
      case 'replace':
        this.#replace(text(operation, 'path', 'replace'), value ?? null)
        return
      case 'move': {
        const from = text(operation, 'from', 'move')
        const moved = this.#read(from, 'move', 'from path')
        this.#remove(from, 'move')
        this.#put(text(operation, 'path', 'move'), moved, 'move')
        return
      }
      case 'copy': {
        const source = this.#read(text(operation, 'from', 'copy'), 'copy', 'from path')
        this.#put(text(operation, 'path', 'copy'), this.#copyOf(source), 'copy')
        return
      }
      case 'test':
        this.#test(text(operation, 'path', 'test'), value)
        return
      default:
        throw unprocessablePatch(`Unexpected kind: ${typeof kind === 'string' ? kind : 'unknown'}`)
    }
  }

  #copyOf(value: JsonValue): JsonValue {
    const encoded = JSON.stringify(value)
    this.#copiedBytes += encoded.length
    if (this.#copiedBytes > maxJsonPatchCopyBytes) {
      const [size, limit] = [String(this.#copiedBytes), String(maxJsonPatchCopyBytes)]
      throw unprocessablePatch(
        `Unable to complete the copy, the accumulated size increase of copy is ${size}, exceeding the limit ${limit}`,
      )
    }
    return parseJsonText(encoded)
  }

  #test(path: string, expected: JsonValue | undefined): void {
    const actual = path === '' ? this.root : this.#read(path, 'test', 'path')
    if (expected === undefined || !(jsonEqual(actual, expected) || equalAsWritten(actual, expected))) {
      const why = `testing value ${path} failed: test failed`
      throw unprocessablePatch(why, new FailedTest(why))
    }
  }

  #replace(path: string, value: JsonValue): void {
    if (path === '') {
      if (typeof value !== 'object' || value === null) {
        throw unprocessablePatch('replace operation value must be object or array')
      }
      this.root = value
      return
    }
    const found = this.#find(path)
    if (found === undefined) throw missing(`replace operation does not apply: doc is missing path: ${path}`)
    const { key, own } = found
    if (Array.isArray(found.container)) {
      const index = tryIndex(key, found.container.length)
      if (index === undefined) throw missing(`replace operation does not apply: doc is missing key: ${path}`)
      ;(own() as JsonValue[])[index] = value
    } else putField(own() as JsonObject, key, value)
  }

  #put(path: string, value: JsonValue, operation: string): void {
    const found = this.#find(path)
    const what = operation === 'add' ? 'path' : 'destination path'
    if (found === undefined)
      throw missing(
        `${operation} operation does not apply: doc is missing ${what}: ${path === '' ? '""' : `"${path}"`}`,
      )
    const { container, key, own } = found
    if (!Array.isArray(container)) {
      putField(own() as JsonObject, key, value)
      return
    }
    const index = key === '-' ? container.length : insertIndex(key, container.length, path, operation)
    this.#chargeMove(container.length - index)
    ;(own() as JsonValue[]).splice(index, 0, value)
  }

  #remove(path: string, operation: string): void {
    const found = this.#find(path)
    if (found === undefined) throw missing(`${operation} operation does not apply: doc is missing path: "${path}"`)
    const { container, key, own } = found
    const where = `error in ${operation} for path: '${operation === 'move' ? key : path}'`
    if (Array.isArray(container)) {
      const index = arrayIndex(key, container.length, where)
      this.#chargeMove(container.length - index)
      ;(own() as JsonValue[]).splice(index, 1)
      return
    }
    if (!Object.hasOwn(container, key)) throw missing(`${where}: Unable to remove nonexistent key: ${key}`)
    // eslint-disable-next-line @typescript-eslint/no-dynamic-delete -- a JSON object of ours, just copied
    delete (own() as JsonObject)[key]
  }

  /** The value at a path; an absent field of an object reads as null, as in upstream's library. */
  #read(path: string, operation: string, what: string): JsonValue {
    const found = this.#find(path)
    if (found === undefined) throw missing(`${operation} operation does not apply: doc is missing ${what}: ${path}`)
    const { container, key } = found
    if (!Array.isArray(container)) return fieldOf(container, key) ?? null
    return container[arrayIndex(key, container.length, `error in ${operation} for path: '${path}'`)] ?? null
  }

  /** The container of a path's last step; `own` copies it and all above it, so that it may be changed. */
  #find(path: string): { container: Container; key: string; own: () => Container } | undefined {
    const steps = path.split('/').slice(1).map(decodeStep)
    const key = steps.pop()
    if (key === undefined) return undefined
    const chain: { container: Container; step: string | number }[] = []
    let current: JsonValue = this.root
    for (const step of steps) {
      if (typeof current !== 'object' || current === null) return undefined
      const at = Array.isArray(current) ? tryIndex(step, current.length) : step
      if (at === undefined) return undefined
      chain.push({ container: current, step: at })
      current = child(current, at)
    }
    if (typeof current !== 'object' || current === null) return undefined
    const container: Container = current
    const own = (): Container => {
      let parent: Container | undefined
      let parentStep: string | number = ''
      for (const { container: link, step } of [...chain, { container, step: '' }]) {
        const mine = this.#ownCopy(link)
        if (parent === undefined) this.root = mine
        else setChild(parent, parentStep, mine)
        parent = mine
        parentStep = step
      }
      return parent ?? container
    }
    return { container, key, own }
  }

  #chargeMove(items: number): void {
    this.#work.spend(1 + Math.ceil(items / movedItemsPerStep), tooLong)
  }

  #ownCopy(container: Container): Container {
    if (this.#owned.has(container)) return container
    const copy = Array.isArray(container) ? [...container] : { ...container }
    this.#owned.add(copy)
    return copy
  }
}

function child(container: Container, step: string | number): JsonValue {
  if (Array.isArray(container)) return container[step as number] ?? null
  return fieldOf(container, step as string) ?? null
}

function setChild(container: Container, step: string | number, value: JsonValue): void {
  if (Array.isArray(container)) container[step as number] = value
  else putField(container, step as string, value)
}

function text(operation: JsonObject, field: string, kind: string): string {
  const value = fieldOf(operation, field)
  if (typeof value !== 'string') throw missing(`${kind} operation failed to decode ${field}`)
  return value
}

function missing(what: string): Error {
  return unprocessablePatch(`${what}: missing value`)
}

function decodeStep(step: string): string {
  return step.includes('~') ? step.replace(/~[01]/g, (escape) => (escape === '~1' ? '/' : '~')) : step
}

function tryNumber(key: string): number | undefined {
  return /^[+-]?[0-9]{1,15}$/.test(key) ? Number(key) : undefined
}

function tryIndex(key: string, length: number): number | undefined {
  const index = tryNumber(key)
  if (index === undefined || index >= length || index < -length) return undefined
  return index < 0 ? index + length : index
}

function arrayIndex(key: string, length: number, where: string): number {
  const index = tryIndex(key, length)
  if (index !== undefined) return index
  if (tryNumber(key) === undefined) throw unprocessablePatch(`${where}: strconv.Atoi: parsing "${key}": invalid syntax`)
  throw unprocessablePatch(`${where}: Unable to access invalid index: ${key}: invalid index referenced`)
}

function insertIndex(key: string, length: number, path: string, operation: string): number {
  const where = `error in ${operation} for path: '${path}'`
  const index = tryNumber(key)
  if (index === undefined) {
    const syntax = `strconv.Atoi: parsing "${key}": invalid syntax`
    throw unprocessablePatch(`${where}: value was not a proper array index: '${key}': ${syntax}`)
  }
  // A negative index counts from the end of the array after the insertion: -1 appends.
  const at = index < 0 ? index + length + 1 : index
  if (at < 0 || at > length) {
    throw unprocessablePatch(`${where}: Unable to access invalid index: ${key}: invalid index referenced`)
  }
  return at
}
