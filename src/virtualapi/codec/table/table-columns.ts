// Columns of kubectl's tables.
import { apiVersionOf } from '#apimachinery/meta/index.ts'
import { readGenerated } from '#virtualapi/kinds/resources/generated-facts.ts'
import type { PrinterColumn } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ResourceInfo } from '#virtualapi/kinds/resources/resource-info.ts'

/** metav1.TableColumnDefinition. A column with a priority above 0 is shown only with `-o wide`. */
export interface TableColumn {
  readonly name: string
  readonly type: string
  readonly format: string
  readonly description: string
  readonly priority: number
}

type Row = readonly [name: string, type: string, format: string, priority: number]

const nameColumn: TableColumn = {
  name: 'Name',
  type: 'string',
  format: 'name',
  description: 'Name of the object, unique among its kind and namespace.',
  priority: 0,
}
const createdColumn: TableColumn = {
  name: 'Created At',
  type: 'date',
  format: '',
  description: 'When the object was created.',
  priority: 0,
}

/** The default columns of custom resources. */
const defaultPrinterColumns: readonly PrinterColumn[] = [
  {
    name: 'Age',
    type: 'date',
    jsonPath: '.metadata.creationTimestamp',
    description: createdColumn.description,
  },
]

let builtInColumns: ReadonlyMap<string, readonly TableColumn[]> | undefined

/** The columns of a resource; `printerColumns`: the additionalPrinterColumns of a custom resource. */
export function tableColumns(info: ResourceInfo, printerColumns?: readonly PrinterColumn[]): readonly TableColumn[] {
  if (!info.builtIn) return customColumns(printerColumnsOf(printerColumns))
  return columnsOfKind(info) ?? [nameColumn, createdColumn]
}

/** The printer columns of a custom resource, or the default. */
export function printerColumnsOf(columns: readonly PrinterColumn[] | undefined): readonly PrinterColumn[] {
  return columns === undefined || columns.length === 0 ? defaultPrinterColumns : columns
}

/** The columns of a built-in kind; undefined if the kind has the default columns. */
export function columnsOfKind(info: {
  group: string
  version: string
  kind: string
}): readonly TableColumn[] | undefined {
  builtInColumns ??= new Map(
    Object.entries(readGenerated('table-columns') as Record<string, Row[]>).map(([key, rows]) => [
      key,
      rows.map(([name, type, format, priority]) => ({
        name,
        type,
        format,
        description: name === 'Name' ? nameColumn.description : name === 'Age' ? createdColumn.description : '',
        priority,
      })),
    ]),
  )
  return builtInColumns.get(`${apiVersionOf(info)}/${info.kind}`)
}

function customColumns(columns: readonly PrinterColumn[]): TableColumn[] {
  const custom = columns.map(({ name, type, format = '', description = '', jsonPath, priority = 0 }) => ({
    name,
    type,
    format,
    description: description || `Custom resource definition column (in JSONPath format): ${jsonPath}`,
    priority,
  }))
  return [nameColumn, ...custom]
}
