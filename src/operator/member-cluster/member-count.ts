// Counts MemberClusters by the status of their condition Ready, change by change: a heartbeat does not count them all.
import type { DeepReadonly } from '#client/index.ts'
import type { MemberCluster } from '#crds/index.ts'
import type { Gauge } from '#telemetry/index.ts'

const statuses = ['True', 'False', 'Unknown'] as const
type Status = (typeof statuses)[number]

export class MemberCount implements Disposable {
  readonly #gauge: Gauge | undefined
  readonly #counts: Record<Status, number> = { True: 0, False: 0, Unknown: 0 }

  constructor(gauge: Gauge | undefined) {
    this.#gauge = gauge
  }

  /** Takes one change of the informer: `before` is absent for a new member, `after` for one that is gone. */
  change(before: DeepReadonly<MemberCluster> | undefined, after: DeepReadonly<MemberCluster> | undefined): void {
    if (before !== undefined) this.#add(readyOf(before), -1)
    if (after !== undefined) this.#add(readyOf(after), 1)
  }

  /** This process knows nothing of members any more. */
  [Symbol.dispose](): void {
    for (const ready of statuses) this.#gauge?.set(0, { ready })
  }

  #add(ready: Status, by: number): void {
    this.#counts[ready] += by
    this.#gauge?.set(this.#counts[ready], { ready })
  }
}

/** Unknown until the operator has asked it for the first time. */
function readyOf({ status }: DeepReadonly<MemberCluster>): Status {
  const text = status?.conditions?.find(({ type }) => type === 'Ready')?.status
  return statuses.find((known) => known === text) ?? 'Unknown'
}
