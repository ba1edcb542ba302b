// The dependencies of webhook calls: the same on every thread, but for the maker of the calls.
import type { Authorizer } from '#virtualapi/auth/authz/index.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import type { Conversions } from '#virtualapi/write/conversion/conversions.ts'
import type { Outbound } from '#virtualapi/outbound/calls/outbound.ts'

export interface WebhookDependencies {
  readonly outbound: Outbound
  readonly catalog: Catalog
  readonly conversions: Conversions
  /** Answers the questions of matchConditions. */
  readonly authorizer: Pick<Authorizer, 'authorize'>
}
