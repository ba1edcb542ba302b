// The members and the rules of admins, for admission on the worker: the main thread copies them to the worker only
// after they have changed.
import type { Fleet } from '#virtualapi/write/admission/placement-rules.ts'

/** The fleet as sent to the worker; members and rules are absent if the worker has this version. */
export interface ToldFleet {
  readonly version: number
  readonly members?: ReturnType<Fleet['all']>
  readonly adminPlacements?: ReturnType<Fleet['adminPlacements']>
}

/**
 * Makes the function that answers the worker, which asks with the version that it knows (0: none). The answer is
 * undefined if there is no fleet.
 */
export function tellFleet(fleet: () => Fleet | undefined): (known: number) => ToldFleet | undefined {
  let last: Required<ToldFleet> = { version: 0, members: [], adminPlacements: [] }
  return (known) => {
    const now = fleet()
    if (now === undefined) return undefined
    const [members, adminPlacements] = [now.all(), now.adminPlacements()]
    const isKnown = last.version > 0 && isSame(last.members, members) && isSame(last.adminPlacements, adminPlacements)
    if (!isKnown) last = { version: last.version + 1, members, adminPlacements }
    return last.version === known ? { version: known } : last
  }
}

/** True if both arrays hold the same objects: a cache replaces an object when it changes. */
function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index])
}

/** The fleet on the worker. Each call asks the main thread whether the fleet has changed. */
export function hearFleet(ask: (known: number) => ToldFleet | undefined): () => Fleet | undefined {
  let known: Required<ToldFleet> | undefined
  return () => {
    const told = ask(known?.version ?? 0)
    if (told === undefined) return undefined
    const { version, members = known?.members ?? [], adminPlacements = known?.adminPlacements ?? [] } = told
    const heard = { version, members, adminPlacements }
    known = heard
    return { all: () => heard.members, adminPlacements: () => heard.adminPlacements }
  }
}
