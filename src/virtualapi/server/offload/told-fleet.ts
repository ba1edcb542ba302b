// The members and the rules of admins, as the worker learns them for its admission: copied to it only after they
// changed.
import type { Fleet } from '#virtualapi/write/admission/placement-rules.ts'

/** Undefined parts: the worker has this version. */
export interface ToldFleet {
  readonly version: number
  readonly members?: ReturnType<Fleet['all']>
  readonly adminPlacements?: ReturnType<Fleet['adminPlacements']>
}

/** Answers what the worker asks with the version that it knows; 0: none. Undefined: there is no fleet. */
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

/** Objects of a cache are replaced when they change. */
function isSame(one: readonly unknown[], other: readonly unknown[]): boolean {
  return one.length === other.length && one.every((item, index) => item === other[index])
}

/** The fleet on the worker, which asks for it anew each time that it is needed. */
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
