// The rule for the status of a kind: which fields come from members, and how the reports of several members are merged.

export interface StatusRule {
  /** Numbers that are summed over members. */
  readonly summed: readonly string[]
  /** Fields that are taken from one member: the one that serves. */
  readonly taken: readonly string[]
  /** The list of load-balancer addresses is joined over members. */
  readonly joinsAddresses?: boolean
  /** The controller writes status.observedGeneration. */
  readonly observes: boolean
  /** Absent: the status has no conditions. `withUpdateTime`: they have lastUpdateTime. */
  readonly conditions?: 'plain' | 'withUpdateTime'
  /** A status without conditions does not count yet: the controller looks at a new object only after a while. */
  readonly awaitsConditions?: boolean
}
