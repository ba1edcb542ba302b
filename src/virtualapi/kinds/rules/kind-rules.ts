// The hooks of one built-in kind; one file per kind beside this one.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { RequestContext, Strategy } from '#virtualapi/kinds/resources/resource-definition.ts'

/** Hooks of a kind. Objects are decoded by the struct of the kind, so their members have the right types. */
export interface KindRules extends Pick<
  Strategy,
  | 'prepareForCreate'
  | 'prepareForUpdate'
  | 'gracePeriodSeconds'
  | 'deletedByController'
  | 'keepsStatusOnCreate'
  | 'countsChange'
  | 'isRenewal'
> {
  /** Warnings about a valid object. `old` is absent for a new one. */
  warningsOf?(object: KubeObject, old: KubeObject | undefined): readonly string[]
  /** Warnings about a valid status. */
  statusWarningsOf?(object: KubeObject): readonly string[]
  /** Runs before defaults are set, on the object as the client sent it. May change it. */
  beforeDefaults?(object: KubeObject): void
  /** Drops fields whose feature gate is off. As upstream, after it was said who owns them. */
  dropDisabled?(object: KubeObject): void
  /** Validates every object, new or changed. `old` is absent for a new one. */
  validate?(object: KubeObject, old: KubeObject | undefined, context: RequestContext): StatusCause[]
  /** True: upstream runs `validate` twice on an update and reports each error twice. */
  readonly validatesUpdateTwice?: true
  /** Validates what a subresource wrote. */
  validateSubresource?(object: KubeObject, old: KubeObject, subresource: string): StatusCause[]
  /** Validates immutable fields. Does not run for subresources. */
  validateChange?(object: KubeObject, old: KubeObject, context: RequestContext): StatusCause[]
}
