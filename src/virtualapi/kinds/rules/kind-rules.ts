// What one built-in kind does beyond the generic; one small file per kind beside this one.
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../apimachinery/status/index.ts'
import type { RequestContext, Strategy } from '../../resources/resource-definition.ts'

/** Hooks of a kind. Objects are decoded, so their members have the types of the kind. */
export interface KindRules extends Pick<
  Strategy,
  'prepareForCreate' | 'prepareForUpdate' | 'gracePeriodSeconds' | 'endsItself' | 'bornWithStatus' | 'countsChange'
> {
  /** What the writer of a good object should know. `old` is absent for a new one. */
  warningsOf?(object: KubeObject, old: KubeObject | undefined): readonly string[]
  /** What the writer of a good status should know. */
  statusWarningsOf?(object: KubeObject): readonly string[]
  /** Before defaults: what must see the object as it was sent. May change it. */
  beforeDefaults?(object: KubeObject): void
  /** What must hold of every object, new or changed. `old` is absent for a new one. */
  validate?(object: KubeObject, old: KubeObject | undefined, context: RequestContext): StatusCause[]
  /** Upstream asks this of a changed object twice, and tells of it twice. */
  readonly asksTwice?: true
  /** What must hold of what a subresource wrote. */
  validatePart?(object: KubeObject, old: KubeObject, subresource: string): StatusCause[]
  /** What may not change. Not asked about updates of a subresource. */
  validateChange?(object: KubeObject, old: KubeObject, context: RequestContext): StatusCause[]
}
