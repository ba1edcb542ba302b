// The progress of a drain: the workloads of which a member still has something, the volumes that no workload uses, and
// the reason why each of them waits. Pure.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'
import {
  heldAnnotation,
  maxRemaining,
  placedOn,
  workloadKindOfObject,
  type RemainingWorkload,
  type VolumeMove,
} from '#crds/index.ts'

export interface DrainProgress {
  readonly moving: number
  readonly held: number
  /** How many of them are claims without a workload. */
  readonly claims: number
  /** At most maxRemaining. */
  readonly remaining: readonly RemainingWorkload[]
}

/** A workload and the logical cluster that it is in. */
export interface WorkloadThere {
  readonly cluster: string
  readonly workload: DeepReadonly<KubeObject>
}

/** A claim with its volume, and the logical cluster that it is in. */
export interface ClaimThere {
  readonly cluster: string
  readonly claim: DeepReadonly<KubeObject>
  /** Its move to another member. */
  readonly move?: DeepReadonly<VolumeMove>
}

const maxMessage = 1024

/** What a member still has, or is about to have. */
export interface LeftInMember {
  readonly workloads: readonly WorkloadThere[]
  readonly claims: readonly ClaimThere[]
  /** Moves whose claims become claims of the member. */
  readonly arriving: readonly DeepReadonly<VolumeMove>[]
}

/** The progress of draining `member`. */
export function drainProgress(member: string, { workloads, claims, arriving }: LeftInMember): DrainProgress {
  const all = [
    ...workloads.map((one) => remainingOf(member, one)),
    ...claims.map(remainingClaim),
    ...arriving.map(arrivingClaim),
  ]
  const held = all.filter(({ state }) => state === 'Held').length
  return {
    moving: all.length - held,
    held,
    claims: claims.length,
    remaining: all.sort(heldFirst).slice(0, maxRemaining),
  }
}

function remainingClaim({ cluster, claim, move }: ClaimThere): RemainingWorkload {
  const { name = '', namespace = '' } = claim.metadata
  const where = { logicalCluster: cluster, kind: 'PersistentVolumeClaim', namespace, name }
  if (move === undefined)
    return {
      ...where,
      state: 'Held',
      message:
        'no workload uses its volume, and it does not move: no Placement lets it (spec.volumes), or no other member cluster takes it. To do without the data, delete the claim',
    }
  const { summary = 'it begins' } = move.status ?? {}
  const text = `its volume moves to member cluster "${move.spec.to}": ${summary}`
  return { ...where, state: 'Moving', message: text.slice(0, maxMessage) }
}

function arrivingClaim({ spec, status }: DeepReadonly<VolumeMove>): RemainingWorkload {
  const { summary = 'the claim gets its new volume' } = status ?? {}
  const message = `its volume arrives from member cluster "${spec.from}", and leaves again: ${summary}`
  return {
    ...{ logicalCluster: spec.logicalCluster, kind: 'PersistentVolumeClaim' },
    ...{ namespace: spec.namespace, name: spec.claim, state: 'Moving', message: message.slice(0, maxMessage) },
  }
}

function remainingOf(member: string, { cluster, workload }: WorkloadThere): RemainingWorkload {
  const { kind, metadata } = workload
  const { name = '', namespace = '', annotations = {} } = metadata
  const copies = Object.entries(placedOn(workload as KubeObject))
  const held = annotations[heldAnnotation]
  const isLeaving = copies.every(
    ([other, { state }]) => other !== member || ['Draining', 'Terminating', 'Forwarding'].includes(state),
  )
  const others = copies.filter(([other, { state }]) => other !== member && state !== 'Held')
  const isWaitedFor = !isLeaving && workloadKindOfObject(workload)?.move === 'stays'
  const isHeld = isWaitedFor || (held !== undefined && !isLeaving && others.length === 0)
  const where = others
    .map(
      ([other, { state, wait }]) =>
        `"${other}" (${state}${wait ? `, waits for ${wait.gate} since ${wait.since}` : ''})`,
    )
    .join(', ')
  const { state: here, wait: forwarding } = placedOn(workload as KubeObject)[member] ?? {}
  const until = forwarding?.until === undefined ? '' : `, until ${forwarding.until}`
  const moving =
    here === 'Forwarding'
      ? `clients may still know the addresses of this member cluster${until}`
      : where === ''
        ? 'it is being removed'
        : `to member cluster ${where}`
  const reason = isWaitedFor ? 'it does not move: it stays until it ends or somebody deletes it' : held
  const message = isHeld ? (reason ?? '') : isLeaving || others.length > 0 ? moving : 'it waits for a decision'
  return {
    logicalCluster: cluster,
    kind,
    namespace,
    name,
    state: isHeld ? 'Held' : 'Moving',
    message: message.slice(0, maxMessage),
  }
}

function heldFirst(a: RemainingWorkload, b: RemainingWorkload): number {
  if (a.state !== b.state) return a.state === 'Held' ? -1 : 1
  const [left, right] = [a, b].map(({ logicalCluster, namespace, name, kind }) =>
    [logicalCluster, namespace, name, kind].join('/'),
  )
  return (left ?? '') < (right ?? '') ? -1 : 1
}
