// The rules by which the volumes of a workload move to another member. Pure.
import type { DeepReadonly, KubeObject } from '#apimachinery/meta/index.ts'
import { quantityOf } from '#apimachinery/quantity/index.ts'
import type { VolumeWay } from '#crds/index.ts'
import type { ApplicableRules } from './applicable-rules.ts'
import { storageClassOf } from './classes.ts'
import { byRank } from './target.ts'

/** How one volume moves. */
export interface VolumeRule {
  readonly way: VolumeWay
  /** The class of the new volume; undefined: that of the claim. */
  readonly storageClass?: string
  readonly retainSeconds: number
  /** Bytes per second; undefined: no limit. */
  readonly bandwidth?: number
  readonly requireConsent: boolean
  /** Of way Replicate. */
  readonly standbys: readonly string[]
  readonly everySeconds: number
}

const defaultRetainSeconds = 86_400
const defaultEverySeconds = 60

/** How the volume of the claim moves, or why it does not. */
export function volumeRuleOf(
  claim: DeepReadonly<KubeObject>,
  { ofTenant, ofCluster, global }: ApplicableRules,
): VolumeRule | { readonly why: string } {
  const [tenants] = ofTenant.filter(({ volumes }) => volumes !== undefined).toSorted(byRank)
  if (tenants?.volumes?.default === 'Pin') return { why: `Placement "${tenants.name}" pins them` }
  const level = [ofCluster, global].find((rules) => rules.some(({ volumes }) => volumes !== undefined)) ?? []
  const [admins] = level.filter(({ volumes }) => volumes !== undefined).toSorted(byRank)
  if (admins?.volumes === undefined) return { why: 'no Placement of the administrators lets them move' }
  const { classes = [], bandwidth, retainSeconds = defaultRetainSeconds, requireConsent = false } = admins.volumes
  const { standbys = [], everySeconds = defaultEverySeconds } = admins.volumes
  const ofClaim = storageClassOf(claim)
  const row = classes.find(({ storageClass }) => storageClass === ofClaim)
  const moves = row?.moves ?? admins.volumes.default ?? 'Pin'
  if (moves === 'Never' || moves === 'Pin')
    return { why: `Placement "${admins.name}" does not let those of StorageClass "${ofClaim ?? ''}" move` }
  return {
    way: moves,
    ...(row?.target !== undefined && row.target !== ofClaim && { storageClass: row.target }),
    ...(bandwidth !== undefined && { bandwidth: Number(quantityOf(bandwidth).nanos / 1_000_000_000n) }),
    retainSeconds,
    requireConsent: requireConsent || tenants?.volumes?.requireConsent === true,
    standbys,
    everySeconds,
  }
}
