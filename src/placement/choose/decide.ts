// The decision about one workload, with the rules about no single member: volumes, and kinds that run once. Pure.
import type { Decision, Rejection } from '#placement/move/move-input.ts'
import type { Choice } from './choice.ts'
import { choose } from './choose.ts'
import type { Target } from '#placement/rules/target.ts'

/** Where the workload should run. */
export function decide(choice: Choice): Decision {
  const { current, move: how } = choice
  const stays = how === 'stays' ? decideStay(choice) : undefined
  if (stays !== undefined) return { wanted: stays, held: [], rejected: [] }
  const target = targetWithVolumes(choice)
  if ('reason' in target) return undecided(target)
  return choose({ ...choice, target: how === 'makeBeforeBreak' ? target : onlyOne(target, current) })
}

function undecided(rejection: Rejection): Decision {
  return { wanted: { kind: 'undecided' }, held: [rejection], rejected: [rejection] }
}

/** The target, or the member with the volumes of the workload; a rejection if somebody asks for another one. */
function targetWithVolumes({ target, volumesIn }: Choice): Target | Rejection {
  const [where] = volumesIn
  if (where === undefined || target.kind === 'none') return target
  if (volumesIn.length === 1 && (target.kind === 'best' || target.names.includes(where)))
    return { kind: 'members', names: [where] }
  const message = `its volumes are in member cluster ${volumesIn.map((name) => `"${name}"`).join(' and ')}, and do not move`
  return { cluster: '', reason: 'VolumesElsewhere', message }
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
