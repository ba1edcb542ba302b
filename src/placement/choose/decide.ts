// The decision about one workload, with the rules about no single member: volumes, and kinds that run once. Pure.
import type { Decision, Rejection } from '#placement/move/move-input.ts'
import { volumeConsentAnnotation } from '#crds/index.ts'
import type { Candidate } from '#placement/rules/candidate.ts'
import type { Choice } from './choice.ts'
import { choose, evict } from './choose.ts'
import { withinRoom } from './placed-room.ts'
import type { Target } from '#placement/rules/target.ts'

/** Where the workload should run, as far as limits of its logical cluster have room. */
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
 * The target, or the member with the volumes of the workload. A rejection if they would have to move and do not, or
 * cannot be read.
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
 * The member with a copy of the volumes, if the one with the volumes does not answer and is fenced, and the tenant agrees
 * to lose what the copy lacks; else a rejection.
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
      `${loss}. To go on with it, an admin has to make sure first that nothing runs there: kcp fence ${name}`,
    )
  return reject(
    `${loss}. To go on with it: kubectl annotate persistentvolumeclaims ${claims.join(' ')} ${volumeConsentAnnotation}=${member}@${asOf}`,
  )
}

/** Whether the workload stays in the member with its volumes. Volumes that move leave a member that is drained. */
function mayStay(where: string, { target, volumesStay, candidates, demand }: Choice): boolean {
  if (target.kind !== 'best') return target.kind === 'members' && target.names.includes(where)
  const candidate = candidates.find(({ name }) => name === where)
  return volumesStay !== undefined || candidate === undefined || evict(candidate, demand) === undefined
}

/**
 * A Job or pod ends where it began, whatever is asked for meanwhile: a second copy would do its work again. Undefined
 * while it is nowhere, or its member is fenced, and it has something to do.
 */
function decideStay({ current, candidates, hasEnded }: Choice): Decision['wanted'] | undefined {
  const [where] = current
  const isLeaving = candidates.some(({ name, state }) => name === where && state === 'Draining')
  if (hasEnded && (where === undefined || isLeaving)) return { kind: 'none' }
  const isFenced = candidates.some((candidate) => candidate.name === where && candidate.isFenced)
  return where === undefined || isFenced ? undefined : { kind: 'members', names: [where] }
}

/** A target with one member: the copies of these kinds would not know of each other. */
function onlyOne(target: Target, current: readonly string[]): Target {
  if (target.kind !== 'members' || target.names.length < 2) return target
  const [first = ''] = target.names
  return { kind: 'members', names: [target.names.find((name) => current.includes(name)) ?? first] }
}
