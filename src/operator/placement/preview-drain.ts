// A preview of the drain of a member: the operator's own decision about each workload there, made one after the other,
// and written nowhere.
import { namespaceKeyOf } from '#client/index.ts'
import { systemClock } from '#async/index.ts'
import type { PlacedCopy, PlacedOn } from '#crds/index.ts'
import { decide, type Choice, type Decision } from '#placement/index.ts'
import { observe } from './observe.ts'
import type { PlacementInputs } from './placement-inputs.ts'
import { parseWorkloadKey } from './workload-key.ts'

export interface DrainPreview {
  readonly logicalCluster: string
  readonly kind: string
  readonly namespace: string
  readonly name: string
  /** The members that it would run on; empty if nothing can take it. */
  readonly to: readonly string[]
  /** Why it would stay, or why a member that was asked for does not get it; absent if all is well. */
  readonly blockedBy?: string
}

/** The outcome for each workload of the member. From then on, decisions with these inputs assume the drain. */
export function previewDrain(inputs: PlacementInputs, member: string, nowMs = systemClock.now()): DrainPreview[] {
  inputs.assumeState(member, 'Draining')
  const given = new Given()
  return [...inputs.workloadKeysIn(member)].sort().flatMap((key) => {
    const ref = parseWorkloadKey(key)
    const workload = ref === undefined ? undefined : inputs.workload(ref)
    const observed = ref === undefined || workload === undefined ? undefined : observe(ref, workload, inputs, nowMs)
    if (ref === undefined || workload === undefined || observed === undefined) return []
    // The workload should run there, but has nothing there.
    if (observed.placedOn[member]?.state === 'Held') return []
    const namespaceKey = namespaceKeyOf(ref.objectKey)
    const { wanted, held, shares } = decide(given.consider(namespaceKey, member, observed.choice))
    const to = wanted.kind === 'members' ? wanted.names.filter((name) => name !== member) : []
    given.note(namespaceKey, to)
    inputs.usage.assume(key, { ...observed.placedOn, ...newCopies(to, shares) }, workload)
    const { cluster: logicalCluster, kind, namespace, name } = ref
    const stays = wanted.kind === 'members' && to.length === 0 ? 'it does not move: it stays until it ends' : ''
    const reason = held.map(({ message }) => message).join('; ') || stays
    const blockedBy = reason === '' ? {} : { blockedBy: reason }
    return [{ logicalCluster, kind: kind.kind, namespace, name, to, ...blockedBy }]
  })
}

function newCopies(to: readonly string[], shares: Decision['shares'] = {}): PlacedOn {
  const copies = to.map((name): [string, PlacedCopy] => {
    const replicas = shares[name]
    return [name, { state: 'Assumed', ...(replicas !== undefined && { replicas }) }]
  })
  return Object.fromEntries(copies)
}

/** Room that this preview gave away, which the informers do not show. */
class Given {
  readonly #load = new Map<string, number>()
  readonly #byNamespace = new Map<string, Set<string>>()

  /** The choice as the operator would see it after the decisions before it. */
  consider(namespaceKey: string, drained: string, choice: Choice): Choice {
    const near = [...choice.near.filter((name) => name !== drained), ...(this.#byNamespace.get(namespaceKey) ?? [])]
    const candidates = choice.candidates.map((one) => ({ ...one, load: one.load + (this.#load.get(one.name) ?? 0) }))
    return { ...choice, near, candidates }
  }

  note(namespaceKey: string, members: readonly string[]): void {
    const ofNamespace = this.#byNamespace.get(namespaceKey) ?? new Set()
    for (const member of members) {
      ofNamespace.add(member)
      this.#load.set(member, (this.#load.get(member) ?? 0) + 1)
    }
    this.#byNamespace.set(namespaceKey, ofNamespace)
  }
}
