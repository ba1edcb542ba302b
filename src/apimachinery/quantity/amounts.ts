// Amounts of several resources, as in a ResourceList, with exact sums.
import { quantityOf, quantityText, type Quantity } from './quantity.ts'

/** Quantities by the name of the resource. */
export type Amounts = ReadonlyMap<string, Quantity>

const zero: Quantity = { nanos: 0n, format: 'DecimalSI' }

/** The amounts of a decoded ResourceList. */
export function amountsOf(list: Readonly<Record<string, unknown>> | null | undefined): Map<string, Quantity> {
  return new Map(
    Object.entries(list ?? {}).map(([name, text]) => [name, quantityOf(typeof text === 'string' ? text : '')]),
  )
}

/**
 * Adds `more`, or subtracts it (`sign` -1). Mutates `sum`. As upstream, an amount of zero takes the format of the other
 * amount.
 */
export function addAmounts(sum: Map<string, Quantity>, more: Amounts, sign: 1 | -1 = 1): void {
  for (const [name, { nanos, format }] of more) {
    const before = sum.get(name) ?? zero
    sum.set(name, {
      nanos: before.nanos + (sign === 1 ? nanos : -nanos),
      format: before.nanos === 0n ? format : before.format,
    })
  }
}

/** The amounts by which `next` exceeds `before`, without zeros. */
export function increaseOf(next: Amounts, before: Amounts): Map<string, Quantity> {
  const increase = new Map<string, Quantity>()
  for (const [name, { nanos, format }] of next) {
    const more = nanos - (before.get(name)?.nanos ?? 0n)
    if (more > 0n) increase.set(name, { nanos: more, format })
  }
  return increase
}

/** The amounts of these names; with `complete`, absent amounts are zero. */
export function selectAmounts(
  amounts: Amounts,
  names: Iterable<string>,
  { complete = false } = {},
): Map<string, Quantity> {
  const selected = new Map<string, Quantity>()
  for (const name of names) {
    const amount = amounts.get(name) ?? (complete ? zero : undefined)
    if (amount !== undefined) selected.set(name, amount)
  }
  return selected
}

/** The amounts as a ResourceList, sorted by name. */
export function listOf(amounts: Amounts): Record<string, string> {
  return Object.fromEntries([...amounts].sort(byName).map(([name, amount]) => [name, quantityText(amount)]))
}

/** The amounts as messages show them: `cpu=1,memory=1Gi`. */
export function amountsText(amounts: Amounts): string {
  return Object.entries(listOf(amounts))
    .map(([name, text]) => `${name}=${text}`)
    .join(',')
}

function byName([a]: readonly [string, unknown], [b]: readonly [string, unknown]): number {
  return a < b ? -1 : 1
}
