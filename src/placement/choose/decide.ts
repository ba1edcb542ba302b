// The decision about one workload, with the rules that do not judge single members: where its volumes are, and whether
// it may have only one copy. Pure.
import type { Decision, Rejection } from '#placement/move/move-input.ts'
import { volumeConsentAnnotation } from '#crds/index.ts'
import type { Candidate } from '#placement/rules/candidate.ts'
import type { Choice } from './choice.ts'
import { choose, evict } from './choose.ts'
import { withinRoom } from './placed-room.ts'
import type { Target } from '#placement/rules/target.ts'

/** Where the workload should run, as far as the limits of logical clusters leave room. */
export function decide(choice: Choice): Decision {
  return withinRoom(decideFreely(choice), choice)
}

function decideFreely(choice: Choice): Decision {
  const { current, move: how } = choice
  const stays = how === 'stays' ? decideStay(choice) : undefined
  if (stays !== undefined) return { wanted: stays, held: [], rejected: [] }
  const target = targetWithVolumes(choice)
  if ('reason' in target) return undecided(target)
  const runsOnce = how !== 'makeBeforeBreak' || choice.volumesIn.length > 0
  return choose({ ...choice, target: runsOnce ? onlyOne(target, current) : target })
}

function undecided(rejection: Rejection): Decision {
  return { wanted: { kind: 'undecided' }, held: [rejection], rejected: [rejection] }
}

/**
 * The target, or the member with the volumes of the workload, or with a copy of them. A rejection if the volumes would
 * have to move, but may not, or cannot because a member with them does not answer.
 */
function targetWithVolumes(choice: Choice): Target | Rejection {
  const { target, volumesIn, volumesStay } = choice
  const [where] = volumesIn
  if (where === undefined || target.kind === 'none') return target
  if (volumesIn.length === 1 && mayStay(where, choice)) return { kind: 'members', names: [where] }
  const names = volumesIn.map((name) => `"${name}"`).join(' and ')
  if (volumesStay !== undefined)
    return {
      cluster: '',
      reason: 'VolumesElsewhere',
      message: `its volumes are in member cluster ${names}, and do not move: ${volumesStay}`,
    }
  const silent = choice.candidates.find(
    ({ name, unreachableMs }) => volumesIn.includes(name) && unreachableMs !== undefined,
  )
  return silent === undefined ? target : withoutMember(silent, choice)
}

/**
 * The target of a workload whose volumes are in a member that does not answer: the member with a copy of the volumes,
 * if the silent member is fenced and the tenant agrees to lose what the copy lacks; else a rejection.
 */
function withoutMember({ name, isFenced = false }: Candidate, { target, volumeCopy }: Choice): Target | Rejection {
  const where = `its volumes are in member cluster "${name}", which does not answer`
  const reject = (message: string): Rejection => ({
    cluster: '',
    reason: 'VolumesUnreachable',
    message: `${where}: ${message}`,
  })
  if (volumeCopy === undefined) return reject('elsewhere it would start without its data')
  const { member, asOf, claims, isAgreed } = volumeCopy
  if (target.kind === 'members' && !target.names.includes(member))
    return reject(`only member cluster "${member}" has a copy`)
  if (isAgreed && isFenced) return { kind: 'members', names: [member] }
  const loss = `member cluster "${member}" has a copy of ${asOf}; what was written later would be lost`
  if (!isFenced)
    return reject(
      `${loss}. To use the copy, an admin first makes sure that nothing runs in member cluster "${name}" any more, then: kcp fence ${name}`,
    )
  return reject(
    `${loss}. To use the copy: kubectl annotate persistentvolumeclaims ${claims.join(' ')} ${volumeConsentAnnotation}=${member}@${asOf}`,
  )
}

/**
 * Whether the workload stays in the member with its volumes. A workload whose volumes may move leaves a member that
 * evicts it, such as one that is drained.
 */
function mayStay(where: string, { target, volumesStay, candidates, demand }: Choice): boolean {
  if (target.kind !== 'best') return target.kind === 'members' && target.names.includes(where)
  const candidate = candidates.find(({ name }) => name === where)
  return volumesStay !== undefined || candidate === undefined || evict(candidate, demand) === undefined
}

/**
 * A Job or pod ends where it began, whatever is asked for meanwhile: a second copy would do its work again. After its
 * end, it should run nowhere if it has no copy, or its member is drained. Undefined if it has not begun, or its member
 * is fenced.
 */
function decideStay({ current, candidates, hasEnded }: Choice): Decision['wanted'] | undefined {
  const [where] = current
  const isLeaving = candidates.some(({ name, state }) => name === where && state === 'Draining')
  if (hasEnded && (where === undefined || isLeaving)) return { kind: 'none' }
  const isFenced = candidates.some((candidate) => candidate.name === where && candidate.isFenced)
  return where === undefined || isFenced ? undefined : { kind: 'members', names: [where] }
}

/** The target with one member only, for a workload whose copies would not know of each other. */
function onlyOne(target: Target, current: readonly string[]): Target {
  if (target.kind !== 'members' || target.names.length < 2) return target
  const [first = ''] = target.names
  return { kind: 'members', names: [target.names.find((name) => current.includes(name)) ?? first] }
}
