// PriorityClasses have other names in each cluster, and the admins of a member bound by its classes what tenants get: a
// class of a tenant becomes the one of the member with the same value, or the next lower one.
import type { MemberClass } from '#crds/index.ts'

type Priority = Pick<MemberClass, 'name' | 'value' | 'preemptionPolicy'>

/**
 * The member's class for a class of a logical cluster: with the highest value that is not above, and that does not
 * preempt if the tenant's does not. Undefined if there is none: the pods get what the member gives to pods without a
 * class.
 */
export function priorityClassIn(
  classes: readonly Readonly<Priority>[],
  wanted: Readonly<Priority>,
): string | undefined {
  const valueOf = ({ value = 0 }: Priority): number => value
  const preempts = ({ preemptionPolicy }: Priority): boolean => preemptionPolicy !== 'Never'
  const [best] = classes
    .filter((one) => valueOf(one) <= valueOf(wanted) && (preempts(wanted) || !preempts(one)))
    .toSorted(
      (a, b) =>
        valueOf(b) - valueOf(a) ||
        Number(preempts(b)) - Number(preempts(a)) ||
        Number(b.name === wanted.name) - Number(a.name === wanted.name) ||
        (a.name < b.name ? -1 : 1),
    )
  return best?.name
}
