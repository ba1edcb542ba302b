// The view of an export on the offload thread: the rule of the one resource that the request is about.
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import { ruleFrom } from '#virtualapi/catalog/sharing/claims.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { PlainRule, RequestView, ViewRule } from '#virtualapi/request/request-view.ts'

export interface ToldView {
  readonly provider: LogicalCluster
  readonly exportUid: string
  /** The path of the logical cluster of the request. */
  readonly path: string
  readonly rule: PlainRule
}

/** The view of a request for the worker; undefined: the request came directly. Throws 503 without a plain rule. */
export function tellView(
  { view }: Pick<Exchange, 'view'>,
  cluster: LogicalCluster,
  rule: ViewRule | undefined,
): ToldView | undefined {
  if (view === undefined) return undefined
  if (rule?.plain === undefined) throw serviceUnavailable('the request cannot be answered on the offload thread')
  return { provider: view.provider, exportUid: view.exportUid, path: view.pathOf(cluster), rule: rule.plain }
}

/** The view on the worker, which answers requests about one resource of one logical cluster. */
export function hearView({ provider, exportUid, path, rule: plain }: ToldView, cluster: LogicalCluster): RequestView {
  const rule = ruleFrom(plain)
  return {
    provider,
    exportUid,
    pathOf: () => path,
    ruleFor: (id) => (id === cluster.id ? rule : undefined),
    concerns: () => true,
    consumers: () => [cluster.id],
    lastLoss: () => 0,
    changedSince: () => [],
    follow: () => () => undefined,
  }
}
