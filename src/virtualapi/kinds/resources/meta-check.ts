// The cadence and depth of checks of a changed object's metadata, by kind.

/** One additional validation of changed metadata; see `Strategy.metadataChecks`. */
export interface MetaCheck {
  /** True: validate everything, as for a new object. False: only check the immutable fields. */
  readonly whole: boolean
  /** Also check that finalizers are standard ones or qualified. */
  readonly ownFinalizers: boolean
}
