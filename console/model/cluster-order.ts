// The logical clusters that a filter leaves, in the order that a user chose.
import type { ClusterItem } from '#console/state/clusters.ts'
import { parseFilter } from '#console/table/filter.ts'
import type { SortOrder } from '#console/table/sort.ts'

/** Clusters that are not ready first, then by name, unless the user chose an order. */
export function clustersInOrder(
  all: readonly ClusterItem[],
  filter: string,
  order: SortOrder | undefined,
): readonly ClusterItem[] {
  const terms = parseFilter(filter)
  const found = all.filter((item) => terms.every(({ value, negated }) => textOf(item).includes(value) !== negated))
  const keyOf = order === undefined ? healthKey : (keys[order.column] ?? healthKey)
  const sign = order?.descending === true ? -1 : 1
  return found
    .map((item) => ({ item, key: keyOf(item) }))
    .sort((a, b) => sign * compare(a.key, b.key) || compare(a.item.name, b.item.name))
    .map(({ item }) => item)
}

function textOf({ name, parent = '', reason = '', phase = '', message = '', ready, loaded }: ClusterItem): string {
  const words = [ready === true ? 'ready' : 'notready', loaded === true ? 'in memory' : 'unloaded']
  return [name, parent, reason, phase, message, ...words].join(' ').toLowerCase()
}

type Key = string | number

const healthKey = ({ ready }: ClusterItem): number => (ready === true ? 1 : 0)

const keys: Readonly<Record<string, (item: ClusterItem) => Key>> = {
  name: ({ name }) => name,
  parent: ({ parent = '' }) => parent,
  health: healthKey,
  loaded: ({ loaded }) => (loaded === true ? 0 : 1),
  objects: ({ usage }) => -(usage?.objects ?? -1),
  bytes: ({ usage }) => -(usage?.bytes ?? -1),
  watches: ({ usage }) => -(usage?.watches ?? -1),
  created: ({ created }) => -Date.parse(created ?? '') || 0,
  message: ({ message = '' }) => message,
}

function compare(a: Key, b: Key): number {
  if (typeof a === 'number' && typeof b === 'number') return a - b
  return String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0
}
