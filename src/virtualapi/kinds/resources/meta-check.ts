// The additional checks of a changed object's metadata, which differ by kind.

/** One additional validation of changed metadata, in `Strategy.metadataChecks`. */
export interface MetaCheck {
  /** True: validate everything, as for a new object. False: only check the immutable fields. */
  readonly whole: boolean
  /** True: also check that finalizers are standard or qualified names. */
  readonly ownFinalizers: boolean
}
