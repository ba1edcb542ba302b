// One object as a row of kubectl's table.
import { apiVersionOf, type JsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import type { PrinterColumn } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'
import { customCell, visitsOfRow } from './custom-cells.ts'
import { nameOf } from './cells/format-cells.ts'
import { cellPrinters } from './printers/index.ts'
import { podRowConditions, type RowCondition } from './printers/pods.ts'
import { valueAt } from './cells/read-fields.ts'
import { printerColumnsOf } from './table-columns.ts'

/** metav1.TableRow without `object`, which the caller adds according to `includeObject`. */
export interface TableRow {
  readonly cells: JsonValue[]
  readonly conditions?: readonly RowCondition[]
}

/** The cells of an object, in the order of `tableColumns`. Ages are relative to `nowMs`. */
export function tableRow(
  info: ResourceInfo,
  object: KubeObject,
  nowMs: number,
  printerColumns?: readonly PrinterColumn[],
): TableRow {
  const json = object as unknown as JsonObject
  if (!info.builtIn) {
    const row = { left: visitsOfRow }
    const custom = printerColumnsOf(printerColumns).map((column) => customCell(column, json, nowMs, row))
    return { cells: [nameOf(json), ...custom] }
  }
  const key = `${apiVersionOf(info)}/${info.kind}`
  const print = cellPrinters.get(key) ?? nameAndCreation
  const conditions = key === 'v1/Pod' ? podRowConditions(json) : undefined
  return { cells: print(json, nowMs), ...(conditions === undefined ? {} : { conditions }) }
}

function nameAndCreation(object: JsonObject): JsonValue[] {
  return [nameOf(object), valueAt(object, 'metadata', 'creationTimestamp') ?? null]
}
