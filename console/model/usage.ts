// What a logical cluster uses beside its limits.
import { amountOfUsage, nearShare, type ClusterUsage } from '#crds/index.ts'
import type { ClusterItem } from '#console/state/clusters.ts'
import { bytesText } from './bytes.ts'

export interface LimitShare {
  readonly field: string
  readonly used: string
  readonly limit: string
  /** 0 to 1, and above while usage exceeds the limit. Undefined: not known yet. */
  readonly share: number | undefined
}

const bytes: ReadonlySet<string> = new Set(['storage', 'memory'])

/** Each limit with its usage, the fullest first. */
export function limitShares({ limits = {}, used = {} }: Pick<ClusterItem, 'limits' | 'used'>): LimitShare[] {
  const shares = Object.entries(limits).map(([field, given]): LimitShare => {
    const now = used[field as keyof ClusterUsage]
    const [limit, amount] = [amountOfUsage(given), amountOfUsage(now)]
    const shown = (value: string | number | undefined, number: number | undefined): string =>
      bytes.has(field) && number !== undefined ? bytesText(number) : String(value ?? '')
    const share = limit === undefined || limit <= 0 || amount === undefined ? undefined : amount / limit
    return { field, used: shown(now, amount), limit: shown(given, limit), share }
  })
  return shares.sort((a, b) => (b.share ?? -1) - (a.share ?? -1))
}

/** Logical clusters with limits, the one that is nearest to a limit first. */
export function byShare<T extends Pick<ClusterItem, 'name' | 'limits' | 'used'>>(items: readonly T[]): T[] {
  const fullest = (item: T): number => limitShares(item)[0]?.share ?? -1
  return items
    .filter(({ limits }) => limits !== undefined)
    .map((item) => ({ item, share: fullest(item) }))
    .sort((a, b) => b.share - a.share || (a.item.name < b.item.name ? -1 : 1))
    .map(({ item }) => item)
}

export function isNear({ share = 0 }: LimitShare): boolean {
  return share >= nearShare
}
