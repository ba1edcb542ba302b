// The managers of an object's fields, and what becomes of each field when kcp applies its copy beside them.
import { parseJsonText } from '#apimachinery/json/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { FieldOwner } from '#crds/index.ts'

const maxManagers = 16
const maxExamples = 8

interface ManagedFields {
  readonly manager?: string
  readonly operation?: string
  readonly subresource?: string
  readonly fieldsV1?: Readonly<Record<string, unknown>>
}

/** The managers of the live object. `applied`: what kcp applies; undefined: nothing, so all fields stay theirs. */
export function fieldOwners(live: KubeObject, applied: KubeObject | undefined): FieldOwner[] {
  const entries = (live.metadata.managedFields ?? []) as readonly ManagedFields[]
  return entries.slice(0, maxManagers).map(({ manager = '', operation = '', subresource, fieldsV1 = {} }) => {
    const leaves =
      subresource === undefined ? [...leavesIn(fieldsV1, applied, '')] : [...leavesIn(fieldsV1, undefined, '')]
    return {
      manager: subresource === undefined ? manager : `${manager} (${subresource})`,
      operation,
      fields: leaves.length,
      shared: leaves.filter(({ isShared }) => isShared).length,
      examples: leaves
        .slice(0, maxExamples)
        .map(({ path, isShared }) => ({ path, becomes: isShared ? ('Shared' as const) : ('Kept' as const) })),
    }
  })
}

interface Leaf {
  readonly path: string
  readonly isShared: boolean
}

/** The leaves of a set of fields (FieldsV1), and whether the value has them. */
function* leavesIn(fields: Readonly<Record<string, unknown>>, value: unknown, path: string): Generator<Leaf> {
  const inside = Object.entries(fields).filter(([key]) => key !== '.')
  if (inside.length === 0 && path !== '') yield { path: path.slice(1), isShared: value !== undefined }
  for (const [key, below] of inside) {
    const [name, found] = stepInto(key, value)
    yield* leavesIn(isJsonObject(below) ? below : {}, found, `${path}${name}`)
  }
}

function stepInto(key: string, value: unknown): readonly [name: string, value: unknown] {
  const rest = key.slice(2)
  if (key.startsWith('f:')) return [`.${rest}`, isJsonObject(value) ? value[rest] : undefined]
  const wanted: unknown = key.startsWith('i:') ? Number(rest) : parseJsonText(rest)
  const items: readonly unknown[] = Array.isArray(value) ? value : []
  if (key.startsWith('k:') && isJsonObject(wanted)) {
    const keys = Object.entries(wanted)
    return [`[${keys.map(([, one]) => JSON.stringify(one)).join(',')}]`, items.find((item) => hasKeys(item, keys))]
  }
  if (key.startsWith('i:')) return [`[${rest}]`, items[Number(rest)]]
  return [`[${rest}]`, items.find((item) => JSON.stringify(item) === JSON.stringify(wanted))]
}

/** A key that an item lacks has its default, which nobody else of the list has. */
function hasKeys(item: unknown, keys: readonly (readonly [string, unknown])[]): boolean {
  return isJsonObject(item) && keys.every(([name, value]) => item[name] === undefined || item[name] === value)
}
