// What calling webhooks needs: the same on every thread, but for who makes the calls.
import type { Catalog } from '../catalog/catalog.ts'
import type { Outbound } from '../outbound/outbound.ts'
import type { ConditionsHold } from './match-conditions.ts'

export interface WebhookParts {
  readonly outbound: Outbound
  readonly catalog: Catalog
  readonly conditionsHold: ConditionsHold
}
