// The lines of `kcp diagnose` about the replicas of `kcp apiserver`, with the number of logical clusters that each one
// owns.
import type { KubeList } from '#apimachinery/meta/index.ts'
import { bucketCount, replicaOf, type ReplicaLease } from '#store/ownership/index.ts'
import { ageText, right, wrong, type Answer, type Finding } from './diagnosis.ts'

const start = 'start kcp apiserver; if it runs, see its log'

/** One finding for each replica, and one for buckets of logical clusters that none or several claim. */
export function replicasFindings(found: Answer<KubeList<ReplicaLease>>, nowMs: number): Finding[] {
  if ('error' in found)
    return [wrong(`Leases of kcp apiserver cannot be listed: ${found.error}`, 'use an identity that may list them')]
  const leases = found.value.items
  if (leases.length === 0) return [wrong('no kcp apiserver has a Lease in kcp-system', start)]
  return [...leases.map((lease) => replicaFinding(lease, nowMs)), ...bucketFindings(leases)]
}

function replicaFinding(lease: ReplicaLease, nowMs: number): Finding {
  const { name, address, claims } = replicaOf(lease)
  const what = `kcp apiserver "${name}" at ${address}`
  const { renewTime = '', leaseDurationSeconds = 0 } = lease.spec ?? {}
  const ageMs = nowMs - Date.parse(renewTime)
  const share = `${claims.size} of ${bucketCount} buckets of logical clusters`
  if (ageMs <= leaseDurationSeconds * 1000) return right(`${what} answers for ${share}`)
  return wrong(`${what} last renewed its Lease ${ageText(ageMs)} ago, and holds ${share}`, start)
}

function bucketFindings(leases: readonly ReplicaLease[]): Finding[] {
  const counts = new Array<number>(bucketCount).fill(0)
  for (const lease of leases) for (const bucket of replicaOf(lease).claims) counts[bucket] = (counts[bucket] ?? 0) + 1
  const none = counts.filter((count) => count === 0).length
  const several = counts.filter((count) => count > 1).length
  const todo = 'run this again in 15 seconds; if nothing has changed, see the logs of kcp apiserver'
  return [
    ...(none === 0
      ? []
      : [wrong(`no replica answers for ${none} of ${bucketCount} buckets of logical clusters`, todo)]),
    ...(several === 0 ? [] : [wrong(`${several} buckets of logical clusters are moving between replicas`, todo)]),
  ]
}
