// The change of an object's status by the reports of members. Pure.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { replacingPatch } from '#apimachinery/patch/index.ts'
import {
  canonicalJson,
  memberStatusesOf,
  placedOn,
  type MemberStatus,
  type PlacedOn,
  type StatusRule,
} from '#crds/index.ts'
import { mergeStatus } from './merge-status.ts'

export interface StatusChangeOptions {
  readonly rule: StatusRule
  /** RFC 3339: for conditions that change. */
  readonly now: string
  /** The copies, if they are to become others than the object says. */
  readonly copies?: PlacedOn
}

/** The merge patch to the status that follows from all reports on the object; undefined if it is there. */
export function statusChange(
  object: KubeObject,
  { rule, now, copies }: StatusChangeOptions,
): Record<string, unknown> | undefined {
  const previous = (object['status'] ?? {}) as Record<string, unknown>
  const reported = memberStatusesOf<MemberStatus>(object)
  // A Job that has ended stays so after its member has gone.
  if (Object.keys(reported).length === 0 && rule.taken.length > 0 && rule.summed.length === 0) return undefined
  const status = mergeStatus({
    rule,
    generation: object.metadata.generation ?? 0,
    spec: object['spec'],
    previous,
    reported,
    copies: copies ?? placedOn(object),
    now,
  })
  return isSameStatus(status, previous) ? undefined : replacingPatch(previous, status)
}

/** Equal but for fields whose absence means the same: zeros and empty objects. */
function isSameStatus(one: Readonly<Record<string, unknown>>, other: Readonly<Record<string, unknown>>): boolean {
  const told = (status: Readonly<Record<string, unknown>>): string =>
    canonicalJson(
      Object.fromEntries(
        Object.entries(status).filter(([, value]) => value !== 0 && value !== null && canonicalJson(value) !== '{}'),
      ),
    )
  return told(one) === told(other)
}
