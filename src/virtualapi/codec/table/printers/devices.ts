// Cells of the kinds of dynamic resource allocation.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { ageOf, isDeleting, nameOf } from '#virtualapi/codec/table/cells/format-cells.ts'
import { objectsAt, textAt, valueAt } from '#virtualapi/codec/table/cells/read-fields.ts'

export function nameAndAgeCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [nameOf(object), ageOf(object, nowMs)]
}

export function resourceClaimCells(object: JsonObject, nowMs: number): JsonValue[] {
  const allocated = valueAt(object, 'status', 'allocation') !== undefined
  const states: string[] = []
  if (isDeleting(object)) states.push('deleted')
  if (allocated) states.push('allocated')
  else if (!isDeleting(object)) states.push('pending')
  if (allocated && objectsAt(object, 'status', 'reservedFor').length > 0) states.push('reserved')
  return [nameOf(object), states.join(','), ageOf(object, nowMs)]
}

export function resourceSliceCells(object: JsonObject, nowMs: number): JsonValue[] {
  return [
    nameOf(object),
    textAt(object, 'spec', 'nodeName'),
    textAt(object, 'spec', 'driver'),
    textAt(object, 'spec', 'pool', 'name'),
    ageOf(object, nowMs),
  ]
}
