// How often, and how closely, a kind looks at the metadata of a changed object.

/** How a kind looks at metadata once more, after what is asked of every change. */
export interface MetaCheck {
  /** All of it, as of a new object; else what may not change. */
  readonly whole: boolean
  /** And that finalizers are upstream's own or qualified. */
  readonly ownFinalizers: boolean
}
