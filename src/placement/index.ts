export * from './rules/applicable-rules.ts'
export * from './rules/candidate.ts'
export * from './choose/choice.ts'
export * from './choose/choose.ts'
export * from './rules/classes.ts'
export * from './choose/decide.ts'
export * from './choose/divide.ts'
export * from './choose/explain.ts'
export * from './choose/filters.ts'
export { limitExceededReason, type PlacedRoom } from './choose/placed-room.ts'
export * from './choose/forbidden-target.ts'
export * from './rules/member-facts.ts'
export type { Gate } from './move/guards.ts'
export * from './move/move.ts'
export type * from './move/move-input.ts'
export { waitText } from './move/waits.ts'
export * from './rebalance/rebalance-moves.ts'
export * from './rebalance/rebalance-refusals.ts'
export * from './rules/rebalance-rule.ts'
export { conditionsWithSynced } from './reported-status/merge-status.ts'
export { statusChange } from './reported-status/status-change.ts'
export * from './choose/scores.ts'
export * from './rules/target.ts'
export * from './choose/usable-member.ts'
export { volumeRuleOf, type VolumeRule } from './rules/volume-rule.ts'
export {
  awaitedIn,
  claimsWithData,
  endsWithPod,
  memberOfClaim,
  needsClaim,
  ordinalOfClaim,
  takerOf,
  unknownClaim,
  usesClaim,
} from './rules/volumes.ts'
