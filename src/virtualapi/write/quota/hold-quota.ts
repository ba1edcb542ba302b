// The last step of admission: holds the amounts that a write adds to the quotas of its namespace (kube-apiserver's
// plugin ResourceQuota).
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import type { RequestContext, ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import { type Amounts, increaseOf } from '#apimachinery/quantity/index.ts'
import { resourceClaims } from './device-usage.ts'
import type { LedgerFor } from './ledger.ts'
import { quotasOf, type Quota } from './quota.ts'
import { isInScopes, isTerminatingPod } from './scopes.ts'
import { countsFor, missingText, usageOf } from './usage.ts'

/** A create or update whose object has its final form. */
export interface QuotaWrite {
  readonly definition: ResourceDefinition
  readonly subresource: string
  readonly namespace: string
  readonly name: string
  readonly context: RequestContext
}

/**
 * Holds the amounts that the write adds to quotas until the result is disposed; dispose of it after the write has
 * ended. Returns undefined if the write adds nothing. Throws 403 if the amounts do not fit. Objects that members
 * created are never refused, because they exist already; they count towards the use.
 */
export function holdQuota(
  write: QuotaWrite,
  object: KubeObject,
  old: KubeObject | undefined,
  ledgerFor: LedgerFor,
): Disposable | undefined {
  const { definition, namespace, name, context } = write
  if (!definition.info.namespaced || context.user.realm.kind === 'installation') return undefined
  if (!isCharged(write, object, old)) return undefined
  const resource = definition.storageKey
  const quotas = quotasOf(context.objects, namespace)
  const increases = new Map<string, Amounts>()
  for (const quota of quotas) {
    if (!isAbout(quota, resource, object)) continue
    requireAmounts(write, quota, object)
    const before = old !== undefined && isAbout(quota, resource, old) ? usageOf(resource, old, context.now) : new Map()
    const increase = increaseOf(usageOf(resource, object, context.now), before)
    if (increase.size > 0) increases.set(quota.name, increase)
  }
  if (increases.size === 0) return undefined
  const ledger = ledgerFor(context.objects)
  const { now, dryRun } = context
  const decision = ledger.charge({ key: { resource, namespace, name }, increases, now, dryRun })
  if ('refusal' in decision) throw forbidden(definition.info, name, decision.refusal)
  return { [Symbol.dispose]: () => ledger.release(namespace, decision.held) }
}

/** Resources whose objects may use more after any update. */
const chargedOnUpdate: ReadonlySet<string> = new Set(['services', 'persistentvolumeclaims', resourceClaims])

/** True for the writes that upstream charges: all creates, and updates that can change the usage of the object. */
function isCharged({ definition, subresource }: QuotaWrite, object: KubeObject, old: KubeObject | undefined): boolean {
  const { storageKey } = definition
  if (storageKey === 'pods' && subresource === 'resize') return old !== undefined
  if (subresource !== '') return false
  if (old === undefined || chargedOnUpdate.has(storageKey)) return true
  return storageKey === 'pods' && isTerminatingPod(old) !== isTerminatingPod(object)
}

function isAbout({ hard, scopes }: Quota, resource: string, object: KubeObject): boolean {
  return [...hard.keys()].some((name) => countsFor(resource, name)) && isInScopes(resource, object, scopes)
}

function requireAmounts({ definition, name }: QuotaWrite, quota: Quota, object: KubeObject): void {
  if (definition.storageKey !== 'pods') return
  const missing = missingText(quota.hard.keys(), object)
  if (missing !== undefined) throw forbidden(definition.info, name, `failed quota: ${quota.name}: ${missing}`)
}
