// Which pods of a copy take new requests.
import type { PlacedCopy } from '../crds/index.ts'

/** False for the pods of a copy that drains, and for a pod of a StatefulSet that goes to another member next, or has gone. */
export function takesRequests(kind: string | undefined, decided: PlacedCopy | undefined, pod: string): boolean {
  const { state, start, replicas, ending } = decided ?? {}
  if (state === 'Draining' || state === 'Terminating') return false
  if (kind !== 'StatefulSet') return true
  const ordinal = Number(pod.slice(pod.lastIndexOf('-') + 1))
  if (ordinal === ending?.ordinal) return false
  return start === undefined || replicas === undefined || (start <= ordinal && ordinal < start + replicas)
}
