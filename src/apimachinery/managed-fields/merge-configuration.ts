// Merges an apply configuration into an object without tracking owners, as MutatingAdmissionPolicies do (KEP-3962).
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { FieldType } from './field-type.ts'
import { mergeTyped } from './merge-typed.ts'
import { requireTyped } from './validate-typed.ts'

/**
 * `live` with the fields of `config`. Neither is changed, and the result shares parts with both. Throws an Error with
 * the words of kube-apiserver.
 */
export function mergeConfiguration(live: JsonObject, config: JsonObject, type: FieldType): JsonValue {
  explained('failed to convert patch object to typed object', () =>
    requireTyped(config, type, { allowDuplicates: false }),
  )
  const atomics = atomicPaths(config, type, '')
  if (atomics.length > 0)
    throw new Error(`invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: ${atomics.join(', ')}`)
  explained('failed to convert original object to typed object', () =>
    requireTyped(live, type, { allowDuplicates: false }),
  )
  return explained('failed to merge patch', () => mergeTyped(live, config, type))
}

function explained<T>(what: string, step: () => T): T {
  try {
    return step()
  } catch (error) {
    throw new Error(`${what}: ${(error as Error).message}`, { cause: error })
  }
}

/** The paths of a value at which a whole list or map is replaced. As upstream, only below declared fields and items. */
function atomicPaths(value: JsonValue, { list, map }: FieldType, path: string): string[] {
  if (isJsonObject(value) && map !== undefined)
    return [
      ...(map.atomic ? [path] : []),
      ...Object.entries(value).flatMap(([name, member]) => {
        const field = map.fields.get(name)
        return field === undefined ? [] : atomicPaths(member, field.type, `${path}.${name}`)
      }),
    ]
  if (Array.isArray(value) && list !== undefined)
    return [
      ...(list.atomic ? [path] : []),
      ...value.flatMap((item, index) => atomicPaths(item, list.items, `${path}[${index}]`)),
    ]
  return []
}
