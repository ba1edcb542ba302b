// The dependencies of webhook calls. They are the same on every thread except for `outbound`.
import type { Authorizer } from '#virtualapi/auth/authz/index.ts'
import type { Catalog } from '#virtualapi/catalog/catalog.ts'
import type { Conversions } from '#virtualapi/write/conversion/conversions.ts'
import type { Providers } from '#virtualapi/write/admission/provider-admission.ts'
import type { Outbound } from '#virtualapi/outbound/calls/outbound.ts'

export interface WebhookDependencies {
  readonly outbound: Outbound
  readonly catalog: Catalog
  readonly conversions: Conversions
  /** Decides the authorization checks of matchConditions. */
  readonly authorizer: Pick<Authorizer, 'authorize'>
  /** The providers whose webhooks act in consumers; absent: none do. */
  readonly providers?: Providers | undefined
}
