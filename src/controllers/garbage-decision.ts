// What garbage collection does with an object, given the state of its owners. Pure.
import type { Owner } from './garbage-owners.ts'

export type Decision =
  | { readonly do: 'keep' }
  /** Nothing is known about an owner: look again later. */
  | { readonly do: 'retry' }
  /** The object keeps its existing owners and loses these. */
  | { readonly do: 'dropOwners'; readonly owners: readonly Owner[] }
  /**
   * No owner is left. With `foregroundIfDependents`, an owner waits for this object: the object is deleted in the
   * foreground if it has dependents of its own, so that they go before the waiting owner.
   */
  | {
      readonly do: 'delete'
      readonly policy: 'Background' | 'Foreground' | 'Orphan'
      readonly foregroundIfDependents: boolean
    }

/** Decides about an object that is not being deleted itself. `finalizers` are those of the object. */
export function decide(owners: readonly Owner[], finalizers: readonly string[]): Decision {
  const inState = (state: Owner['state']): readonly Owner[] => owners.filter((owner) => owner.state === state)
  if (inState('unresolvable').length > 0) return { do: 'retry' }
  const [absent, waiting] = [inState('absent'), inState('waiting')]
  if (inState('solid').length > 0) {
    const dropped = [...absent, ...waiting]
    return dropped.length > 0 ? { do: 'dropOwners', owners: dropped } : { do: 'keep' }
  }
  if (owners.length === 0) return { do: 'keep' }
  return { do: 'delete', policy: policyOf(finalizers), foregroundIfDependents: waiting.length > 0 }
}

/** A finalizer that was set before the deletion decides how dependents are treated, as upstream does. */
function policyOf(finalizers: readonly string[]): 'Background' | 'Foreground' | 'Orphan' {
  if (finalizers.includes('orphan')) return 'Orphan'
  return finalizers.includes('foregroundDeletion') ? 'Foreground' : 'Background'
}
