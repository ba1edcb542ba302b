// The pods of a copy that take new requests.
import type { PlacedCopy } from '#crds/index.ts'

/**
 * Whether a pod of the copy takes new requests: not if the copy drains, and not if the pod of a StatefulSet moves to
 * another member next, or has moved.
 */
export function takesRequests(kind: string | undefined, decided: PlacedCopy | undefined, pod: string): boolean {
  const { state, start, replicas, ending } = decided ?? {}
  if (state === 'Draining' || state === 'Terminating' || state === 'Forwarding') return false
  if (kind !== 'StatefulSet') return true
  const ordinal = Number(pod.slice(pod.lastIndexOf('-') + 1))
  if (ordinal === ending?.ordinal) return false
  return start === undefined || replicas === undefined || (start <= ordinal && ordinal < start + replicas)
}

/** The facts about a pod that decide whether it ends first when a share shrinks. */
export interface SharePod {
  readonly name: string
  readonly isReady: boolean
  /** Whether its label says that it takes new requests. */
  readonly takesRequests: boolean
}

/**
 * The names of the pods that take no requests while a share shrinks to `to`: those that take none already, then those
 * not ready.
 */
export function withdrawnPods(pods: readonly SharePod[], to: number): string[] {
  const rank = ({ takesRequests, isReady }: SharePod): number => (takesRequests ? 0 : 2) + (isReady ? 0 : 1)
  return pods
    .toSorted((a, b) => rank(a) - rank(b) || (a.name < b.name ? -1 : 1))
    .slice(to)
    .map(({ name }) => name)
}
