// Writes the status of Placements: of tenants into their logical clusters, of admins beside the MemberClusters.
import { isDeepStrictEqual } from 'node:util'
import { tolerate } from '#apimachinery/status/index.ts'
import { timestamp, type Clock } from '#async/index.ts'
import { parseKey } from '#client/index.ts'
import { placements } from '#crds/index.ts'
import type { KeyQueue, ReconcileResult } from '#reconcile/index.ts'
import type { OperatorContext } from '#operator/framework/operator-context.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import type { PlacementReports } from './placement-reports.ts'

/** Many workloads change together: their Placement is written once for all that change within this time. */
const collectMs = 1000

/** Visits a Placement after each of its changes. Returns the function that ends it. */
export function followPlacements(inputs: PlacementInputs, queue: KeyQueue): () => void {
  const ends = [inputs.tenantPlacements, inputs.adminPlacements].map((informer) =>
    informer.onChange(({ key, before, after }) => {
      if (after !== undefined && before?.metadata.generation !== after.metadata.generation)
        queue.addAfter(key, collectMs)
    }),
  )
  return () => {
    for (const end of ends) end()
  }
}

/** Adds a Placement whose report has changed to the queue. */
export function reportTo(queue: KeyQueue): (key: string) => void {
  return (key) => queue.addAfter(key, collectMs)
}

/** Writes the status of the Placement with this key if it differs. Rejects with StatusError. */
export async function writePlacementStatus(
  key: string,
  { context, inputs, reports, clock }: PlacementStatusParts,
  signal: AbortSignal,
): Promise<ReconcileResult> {
  const { cluster, name } = parseKey(key)
  const informer = cluster === undefined ? inputs.adminPlacements : inputs.tenantPlacements
  const placement = informer.store.get(key)
  if (placement === undefined) return {}
  const status = reports.statusOf(key, placement, timestamp(clock.now()))
  if (isDeepStrictEqual(status, placement.status)) return {}
  const client = cluster === undefined ? context.clusters : context.virtual(`/clusters/${cluster}`)
  await client
    .patch(placements, { name }, 'merge', { status }, { subresource: 'status', signal })
    .catch(tolerate('NotFound'))
  return {}
}

export interface PlacementStatusParts {
  readonly context: OperatorContext
  readonly inputs: PlacementInputs
  readonly reports: PlacementReports
  readonly clock: Clock
}
