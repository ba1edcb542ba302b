// Decides whether a write fits into the quotas of its namespace, and holds its amounts until the write has ended, so
// that concurrent writes together stay within the quotas. There is one ledger, on the main thread; other threads call
// it.
import type { Revision } from '#apimachinery/meta/index.ts'
import type { ClusterObjects } from '#store/watch-cache/index.ts'
import { addAmounts, type Amounts, amountsText, type Quantity, selectAmounts } from '#apimachinery/quantity/index.ts'
import { usedOf } from './used.ts'
import { quotasOf, type Quota } from './quota.ts'

/** The amounts that a write adds to its quotas. Can be sent to another thread. */
export interface QuotaCharge {
  /** The object that is written; `resource`: the resource in store keys. */
  readonly key: { readonly resource: string; readonly namespace: string; readonly name: string }
  /** The amounts that the write adds, by name of the quota. */
  readonly increases: ReadonlyMap<string, Amounts>
  /** Milliseconds since the epoch. */
  readonly now: number
  /** True: hold nothing. */
  readonly dryRun: boolean
}

/** A refusal, in kube-apiserver's words; or the number under which the amounts are held, for `release`. */
export type Decision = { readonly refusal: string } | { readonly held: number }

/** The ledger of a logical cluster, as one thread uses it. */
export interface QuotaLedger {
  /** Holds the amounts that the write adds, if all quotas have room for them; otherwise returns a refusal. */
  charge(charge: QuotaCharge): Decision
  /** Releases the amounts of a write that has ended, with success or not. */
  release(namespace: string, held: number): void
}

interface Held {
  readonly charge: QuotaCharge
  /**
   * The revision of the store at the time of the charge. If the object has a newer revision, its counted usage includes
   * this write, and the charge is not added.
   */
  readonly since: Revision
}

/**
 * The longest time in milliseconds that a request takes. Amounts that are held for longer belong to a thread that has
 * ended, and are released.
 */
const maxHeldMs = 120_000
/**
 * The held amounts by logical cluster and namespace, then by number. There are entries only while writes are under way.
 */
const underWay = new Map<string, Map<number, Held>>()
let lastHeld = 0

/** The ledger of a logical cluster. */
export type LedgerFor = (objects: ClusterObjects) => QuotaLedger

/** The ledger of this thread. */
export const ledgerFor: LedgerFor = (objects) => ({
  charge: (charge) => decide(objects, charge),
  release: (namespace, held) => release(placeOf(objects, namespace), held),
})

function placeOf({ cluster }: ClusterObjects, namespace: string): string {
  return `${cluster}/${namespace}`
}

function decide(objects: ClusterObjects, charge: QuotaCharge): Decision {
  const { key, increases, now, dryRun } = charge
  const quotas = quotasOf(objects, key.namespace)
  for (const quota of quotas) {
    const increase = increases.get(quota.name)
    const refusal = increase && refusalOf(objects, { quota, quotas, increase, namespace: key.namespace, now })
    if (refusal !== undefined) return { refusal }
  }
  const held = ++lastHeld
  if (dryRun) return { held }
  const place = placeOf(objects, key.namespace)
  const here = underWay.get(place) ?? new Map<number, Held>()
  underWay.set(place, here.set(held, { charge, since: objects.revision() }))
  return { held }
}

function release(place: string, held: number): void {
  const here = underWay.get(place)
  if (here?.delete(held) === true && here.size === 0) underWay.delete(place)
}

interface Question {
  readonly quota: Quota
  readonly quotas: readonly Quota[]
  readonly increase: Amounts
  readonly namespace: string
  readonly now: number
}

function refusalOf(objects: ClusterObjects, { quota, quotas, increase, namespace, now }: Question): string | undefined {
  const requested = selectAmounts(increase, quota.hard.keys())
  const used = selectAmounts(usedOf(objects, namespace, { quota, quotas, now }), requested.keys(), { complete: true })
  addAmounts(used, selectAmounts(heldFor(objects, { quota, namespace, now }), requested.keys()))
  const exceeded = [...requested.keys()].filter((name) => {
    const sum = (used.get(name)?.nanos ?? 0n) + (requested.get(name)?.nanos ?? 0n)
    return sum > (quota.hard.get(name)?.nanos ?? 0n)
  })
  if (exceeded.length === 0) return undefined
  const text = (amounts: Amounts): string => amountsText(selectAmounts(amounts, exceeded))
  return `exceeded quota: ${quota.name}, requested: ${text(requested)}, used: ${text(used)}, limited: ${text(quota.hard)}`
}

/** The amounts that other writes hold and that the counted usage does not include yet. */
function heldFor(
  objects: ClusterObjects,
  { quota, namespace, now }: Pick<Question, 'quota' | 'namespace' | 'now'>,
): Amounts {
  const sum = new Map<string, Quantity>()
  const place = placeOf(objects, namespace)
  for (const [held, { charge, since }] of underWay.get(place) ?? []) {
    if (charge.now + maxHeldMs < now) release(place, held)
    const { resource, name } = charge.key
    const isSeen = (objects.get(resource, namespace, name)?.revision ?? 0) > since
    const increase = isSeen ? undefined : charge.increases.get(quota.name)
    if (increase !== undefined) addAmounts(sum, increase)
  }
  return sum
}
