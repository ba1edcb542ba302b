// The decision of placement about a workload, and the reasons why members were refused.

export interface Rejection {
  /** Empty: it concerns no single member. */
  readonly cluster: string
  readonly reason: string
  readonly message: string
}

export interface Decision {
  /** Where it should run. `none`: somebody asked for no member. `undecided`: nothing changes. `members` is never empty. */
  readonly wanted:
    | { readonly kind: 'members'; readonly names: readonly string[] }
    | { readonly kind: 'none' }
    | { readonly kind: 'undecided' }
  /** Named members that cannot take it now: their copies are Held, and no other copy is removed meanwhile. */
  readonly held: readonly Rejection[]
  /** How many replicas each wanted member has. Absent, for a member or for all: as many as the spec says. */
  readonly shares?: Readonly<Record<string, number>>
  /** Members that were considered and refused. */
  readonly rejected: readonly Rejection[]
}
