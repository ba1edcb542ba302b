// The requests and limits of a pod or claim that are out of the bounds of a LimitRange, with kube-apiserver's messages.
import { quantityOf } from '#apimachinery/quantity/index.ts'

export type Amounts = Readonly<Record<string, string>>

/** An item of spec.limits. */
export interface LimitRangeItem {
  readonly type: string
  readonly min?: Amounts
  readonly max?: Amounts
  readonly default?: Amounts
  readonly defaultRequest?: Amounts
  readonly maxLimitRequestRatio?: Amounts
}

export interface Measured {
  /** Container, Pod or PersistentVolumeClaim. */
  readonly type: string
  readonly requests: Amounts
  /** Absent for claims, which have requests only. */
  readonly limits?: Amounts
}

/** The messages of all violations; empty if everything is within bounds. */
export function violations(items: readonly LimitRangeItem[], measured: readonly Measured[]): string[] {
  return items.flatMap((item) =>
    measured
      .filter(({ type }) => type === item.type)
      .flatMap((measure) => [
        ...Object.entries(item.min ?? {}).map(([name, bound]) => belowMin(name, bound, measure)),
        ...Object.entries(item.max ?? {}).map(([name, bound]) => aboveMax(name, bound, measure)),
        ...Object.entries(item.maxLimitRequestRatio ?? {}).map(([name, bound]) => aboveRatio(name, bound, measure)),
      ])
      .filter((message) => message !== undefined),
  )
}

function belowMin(name: string, bound: string, { type, requests, limits = {} }: Measured): string | undefined {
  const request = requests[name]
  const limit = limits[name]
  const rule = `minimum ${name} usage per ${type} is ${bound}`
  if (request === undefined) return `${rule}.  No request is specified`
  if (amount(request) < amount(bound)) return `${rule}, but request is ${request}`
  if (limit !== undefined && amount(limit) < amount(bound)) return `${rule}, but limit is ${limit}`
  return undefined
}

function aboveMax(name: string, bound: string, { type, requests, limits }: Measured): string | undefined {
  const request = requests[name]
  const rule = `maximum ${name} usage per ${type} is ${bound}`
  if (limits === undefined && request === undefined) return `${rule}.  No request is specified`
  if (limits !== undefined) {
    const limit = limits[name]
    if (limit === undefined) return `${rule}.  No limit is specified`
    if (amount(limit) > amount(bound)) return `${rule}, but limit is ${limit}`
  }
  if (request !== undefined && amount(request) > amount(bound)) return `${rule}, but request is ${request}`
  return undefined
}

function aboveRatio(name: string, bound: string, { type, requests, limits = {} }: Measured): string | undefined {
  const rule = `${name} max limit to request ratio per ${type} is ${bound}`
  const request = amount(requests[name] ?? '0')
  const limit = amount(limits[name] ?? '0')
  if (request === 0n) return `${rule}, but no request is specified or request is 0`
  if (limit === 0n) return `${rule}, but no limit is specified or limit is 0`
  const ratio = Number(limit) / Number(request)
  return ratio * 1e9 > Number(amount(bound)) ? `${rule}, but provided ratio is ${ratio.toFixed(6)}` : undefined
}

/** The amount of a quantity in billionths. */
function amount(text: string): bigint {
  return quantityOf(text).nanos
}
