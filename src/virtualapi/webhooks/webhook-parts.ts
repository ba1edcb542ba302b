// What calling webhooks needs: the same on every thread, but for who makes the calls.
import type { Authorizer } from '../authz/index.ts'
import type { Catalog } from '../catalog/catalog.ts'
import type { Conversions } from '../conversion/conversions.ts'
import type { Outbound } from '../outbound/outbound.ts'

export interface WebhookParts {
  readonly outbound: Outbound
  readonly catalog: Catalog
  readonly conversions: Conversions
  /** Answers the questions of matchConditions. */
  readonly authorizer: Pick<Authorizer, 'authorize'>
}
