// The guards of transitions: each says what must be true, and in words what is waited for until it is.
import type { PlacedCopy } from '#crds/index.ts'
import { elapsedMs, shareOf, type Copy, type CopySeen, type MoveInput, type OrdinalVolumes } from './move-input.ts'

export interface Guard {
  readonly gate: string
  /** Completes "waits for". */
  readonly waitsFor: string
  readonly met: (copy: Copy, input: MoveInput) => boolean
}

/** The guards by gate. A transition that a guard belongs to happens only while the guard is met. */
export const guards = {
  NothingElsewhere: {
    waitsFor: 'the copies in other member clusters to be gone, because it must not run twice',
    met: ({ name }, { placedOn }) =>
      Object.entries(placedOn).every(
        ([other, { state }]) => other === name || ['Held', 'Assumed', 'Forwarding', 'Fenced'].includes(state),
      ),
  },
  OrdinalFree: {
    waitsFor: 'a pod of the other member cluster to end',
    met: ({ name, before }, { placedOn }) =>
      before?.replicas === undefined
        ? Object.entries(placedOn).every(
            ([other, { state, replicas }]) =>
              other === name || replicas === 0 || ['Held', 'Assumed', 'Forwarding', 'Fenced'].includes(state),
          )
        : before.replicas > 0,
  },
  VolumesCopied: {
    waitsFor: 'its volumes to be copied',
    met: ({ name }, { volumes, decision: { wanted } }) =>
      wanted.kind !== 'members' ||
      (volumes?.in.includes(name) !== true && volumes?.unknownIn !== name) ||
      wanted.names.every((to) => to === name || volumes.isCopied(to)),
  },
  VolumesHere: {
    waitsFor: 'its volumes to arrive',
    met: ({ name, before }, { volumes }) =>
      volumes === undefined ||
      (volumes.byOrdinal !== undefined && before?.start !== undefined
        ? ordinalsOf(before).every((ordinal) => isHere(ordinal, name, volumes.byOrdinal))
        : [...volumes.in, volumes.unknownIn ?? name].every((member) => member === name)),
  },
  SpecObserved: {
    waitsFor: 'the controllers of the member cluster to see it',
    met: ({ seen }) => seen.observed,
  },
  RolloutResumed: {
    waitsFor: 'its rollout to be resumed: a member makes no pods of a Deployment that is paused',
    met: ({ seen }) => seen.available || seen.isPaused !== true,
  },
  RolloutComplete: {
    waitsFor: 'its pods to be ready',
    met: ({ seen }) => seen.available,
  },
  EndpointsPublished: {
    waitsFor: 'its endpoints to be known in all member clusters',
    met: ({ seen }) => seen.published,
  },
  ReplacementServes: {
    waitsFor: 'the new copy to serve',
    met: ({ name }, input) => isReplaced(name, input),
  },
  AddressesReplaced: {
    waitsFor: 'the new member cluster to have addresses for clients, as this one has',
    met: ({ name, seen }, input) =>
      seen.external !== true || input.forwards?.(name) !== true || missingAddressesMs(name, input) === 0,
  },
  NamespaceMayLeave: {
    waitsFor: 'the other workloads of its namespace to serve elsewhere',
    met: ({ name }, { mayDrain }) => mayDrain(name),
  },
  SuccessorKnown: {
    waitsFor: 'a member cluster that can take it',
    met: (_, { decision: { wanted, held } }) =>
      wanted.kind === 'none' || (wanted.kind === 'members' && held.length === 0),
  },
  OrdinalsMoved: {
    waitsFor: 'all its pods to be in the other member cluster',
    met: ({ name, before, seen }, input) =>
      input.decision.wanted.kind === 'none' ||
      (before !== undefined &&
        shareOf(before, input) === 0 &&
        seen.observed &&
        (seen.pods ?? 0) === 0 &&
        input.volumes?.in.includes(name) !== true),
  },
  NeverServed: {
    waitsFor: 'a decision',
    met: ({ seen }, { decision: { wanted, held } }) =>
      !seen.available && (seen.ready ?? 0) === 0 && wanted.kind !== 'undecided' && held.length === 0,
  },
  NothingElseServes: {
    waitsFor: 'the new copy to fail',
    met: ({ name }, { decision, placedOn, seen }) =>
      decision.wanted.kind !== 'none' &&
      !Object.entries(placedOn).some(
        ([other, { state }]) => other !== name && state === 'Serving' && answers(seen(other)) && seen(other).available,
      ),
  },
  RunsEnded: {
    waitsFor: 'the end of the Jobs that it started',
    met: ({ seen }) => !seen.isBusy,
  },
  DrainElapsed: {
    waitsFor: 'its last requests to end',
    met: ({ before }, input) => before !== undefined && elapsedMs(before, input) >= input.drainSeconds * 1000,
  },
  EndpointsGone: {
    waitsFor: 'its endpoints to leave all member clusters',
    met: ({ before, seen }, input) =>
      seen.endpointsGone || (before !== undefined && elapsedMs(before, input) >= input.drainSeconds * 3000),
  },
  CopyGone: {
    waitsFor: 'the member cluster to confirm that nothing of it is left',
    met: ({ seen }) => seen.gone,
  },
  AddressesKnown: {
    waitsFor: 'clients to know its addresses',
    met: ({ name, seen }, input) => isForwarding(name, seen, input),
  },
  AddressesForgotten: {
    waitsFor: 'clients to forget the addresses of the member cluster',
    met: ({ name, before, seen }, input) =>
      !isForwarding(name, seen, input) ||
      (before !== undefined && elapsedMs(before, input) >= (input.forwardSeconds ?? 0) * 1000),
  },
  MemberLost: { waitsFor: 'the member cluster to be lost', met: ({ seen }) => seen.lost !== undefined },
  MemberAnswers: {
    waitsFor: 'the member cluster to answer',
    met: ({ seen }) => seen.lost === undefined && !seen.isFenced,
  },
  MemberFenced: { waitsFor: 'the member cluster to be fenced', met: ({ seen }) => seen.isFenced === true },
  MemberNotFenced: { waitsFor: 'the member cluster to be released', met: ({ seen }) => seen.isFenced !== true },
} satisfies Record<string, Omit<Guard, 'gate'>>

export type Gate = keyof typeof guards

/**
 * True if all wanted copies serve now, by what members report and not only by their state. With no wanted copy it is
 * false, unless somebody asked for no member.
 */
function isReplaced(name: string, input: MoveInput): boolean {
  const { wanted, held } = input.decision
  if (wanted.kind === 'none') return true
  if (wanted.kind === 'undecided' || held.length > 0) return false
  const others = wanted.names.filter((other) => other !== name)
  return others.length > 0 && others.every((other) => serves(other, input))
}

/** Whether the member has all data of the pod with this ordinal, or there is none yet. */
export function isHere(ordinal: number, member: string, volumes: OrdinalVolumes | undefined): boolean {
  return volumes === undefined || volumes.in(ordinal).every((where) => where === member)
}

function ordinalsOf({ start = 0, replicas = 0 }: PlacedCopy): number[] {
  return Array.from({ length: replicas }, (_, index) => start + index)
}

/**
 * For how many milliseconds more the old copy waits until clients can come to the new one. They know the address of the
 * old member until another one is told, and only then begin to forget it. A new member that has no address after
 * forwardSeconds may never have one. Where pods of other members cannot be reached, no copy waits: other workloads of
 * its namespace, which it needs in the same member, would not wait.
 */
export function missingAddressesMs(name: string, input: MoveInput): number {
  const { placedOn, forwardSeconds = 0, decision, seen } = input
  const names = decision.wanted.kind === 'members' ? decision.wanted.names : []
  const others = Object.entries(placedOn).filter(([other]) => other !== name && names.includes(other))
  if (others.some(([other]) => seen(other).external === true)) return 0
  return Math.max(0, ...others.map(([, copy]) => forwardSeconds * 1000 - elapsedMs(copy, input)))
}

/** Whether clients use addresses of the member, and pods that serve in another member can be reached from it. */
function isForwarding(name: string, seen: CopySeen, input: MoveInput): boolean {
  const { placedOn, forwardSeconds = 0, forwards = () => false } = input
  if (!seen.external || forwardSeconds === 0 || !answers(seen) || seen.isFenced || !forwards(name)) return false
  return Object.entries(placedOn).some(([other, { state }]) => other !== name && state === 'Serving' && forwards(other))
}

function serves(name: string, input: MoveInput): boolean {
  const copy = input.placedOn[name]
  if (copy?.state !== 'Serving' || elapsedMs(copy, input) < input.soakSeconds * 1000) return false
  // The copy does not have its part of the divided workload yet.
  if (copy.replicas !== input.decision.shares?.[name]) return false
  const seen = input.seen(name)
  return answers(seen) && seen.available && seen.published
}

/**
 * Whether the member answers. The last report of a lost member says nothing about the present: its copy is marked Lost
 * in the step that this guard decides about.
 */
function answers({ lost }: CopySeen): boolean {
  return lost === undefined
}
