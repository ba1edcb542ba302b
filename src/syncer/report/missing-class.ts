// The Event on an Ingress whose class a member does not have: the copy is there, but no controller of the member serves
// it.
import type { DeepReadonly } from '#client/index.ts'
import type { MemberClass } from '#crds/index.ts'
import type { CachedObject } from '#syncer/context/resources.ts'
import type { Reconcile } from '#syncer/context/scope.ts'
import { warnOnce } from './warning-event.ts'

/** Writes an Event on the Ingress if the member lacks its class. */
export async function reportMissingClass(reconcile: Reconcile, ingress: CachedObject): Promise<void> {
  const { member } = reconcile
  const missing = missingIngressClass(ingress, member.classesOf?.('IngressClass'))
  if (missing === undefined) return
  const message = `member cluster "${member.name}" has no IngressClass "${missing}": nothing there serves the Ingress until it has one`
  await warnOnce(reconcile, ingress, { reason: 'ClassMissing', message })
}

/** The class that the Ingress names and a member with these classes does not have. `classes` undefined: not known. */
export function missingIngressClass(
  ingress: CachedObject,
  classes: readonly DeepReadonly<MemberClass>[] | undefined,
): string | undefined {
  const { ingressClassName: name } = (ingress['spec'] ?? {}) as { ingressClassName?: string }
  if (!name || classes === undefined) return undefined
  return classes.some((one) => one.name === name) ? undefined : name
}
