// The copies that replace none of their pods meanwhile. Pure.
import type { PlacedCopy } from '#crds/index.ts'
import type { MoveInput } from './move-input.ts'

/**
 * The copy, paused if another one is about to take its place; the same object if it says so already. The new copy has the present
 * template from its start: a rollout in the old one would end pods that serve, for pods that nobody needs. A pause ends with the
 * wait, so that a tenant can still change what runs where a move makes no progress.
 */
export function withPause(copy: PlacedCopy, { decision: { wanted, held }, now, strategy }: MoveInput): PlacedCopy {
  // See nextOrdinals.
  if (strategy === 'ordinalByOrdinal') return copy
  const { paused: before, ...rest } = copy
  const { gate = '', until = '' } = copy.wait ?? {}
  const isReplaced = wanted.kind === 'members' && held.length === 0
  const paused = isReplaced && gatesOfReplaced.includes(gate) && now < Date.parse(until)
  if (paused === (before ?? false)) return copy
  return paused ? { ...rest, paused } : rest
}

const gatesOfReplaced: readonly string[] = ['ReplacementServes', 'AddressesReplaced', 'NamespaceMayLeave']
