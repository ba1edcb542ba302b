// The workloads of all logical clusters that have a copy in a member, or should have one: their metadata, live.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { heldAnnotation, placedOnAnnotation, workloadKinds } from '#crds/index.ts'
import { follow, type FollowState } from '#console/kube/follow.ts'
import { metadataListType, metadataType, ObjectStore } from '#console/kube/object-store.ts'
import type { AnyObject } from '#console/kube/objects.ts'
import { everyCluster, listPath } from '#console/kube/paths.ts'
import { onlyCluster } from './session.ts'

/** Pods run where their workload does, or end where they began; none of them moves. */
const kinds = workloadKinds.filter(({ kind }) => kind !== 'Pod')

/** The annotations of scheduler and syncers. Others, such as the last applied configuration, are large. */
const ours = /^(kcp\.dev|status\.kcp\.dev)\//

export interface PlacedWorkloads {
  readonly objects: readonly AnyObject[]
  readonly state: FollowState
}

export const placedWorkloads = signal<PlacedWorkloads>({ objects: [], state: { kind: 'listing' } })

/** Keeps `placedWorkloads` live while a page that needs them is shown. */
export function usePlacedWorkloads(): void {
  useEffect(() => {
    const life = new AbortController()
    followAll(life.signal)
    return () => {
      life.abort()
      placedWorkloads.value = { objects: [], state: { kind: 'listing' } }
    }
  }, [])
}

function followAll(signal: AbortSignal): void {
  const stores: ObjectStore[] = []
  const states: FollowState[] = []
  const cluster = onlyCluster()
  let timer: ReturnType<typeof setTimeout> | undefined
  const publish = (): void => {
    timer = undefined
    if (signal.aborted) return
    placedWorkloads.value = { objects: stores.flatMap((store) => [...store.values()]), state: worst(states) }
  }
  for (const [index, { kind, gvr }] of kinds.entries()) {
    const store = new ObjectStore({
      kind,
      isKept: isPlacedOrHeld,
      annotations: ours,
      ...(cluster !== '' && { cluster }),
    })
    stores.push(store)
    states.push({ kind: 'listing' })
    const changed = (state: FollowState): void => {
      states[index] = state
      timer ??= setTimeout(publish, 100)
    }
    const path = listPath(everyCluster, gvr)
    void follow({ path, accept: metadataListType, acceptEvents: metadataType, sink: store, changed, signal })
  }
}

function isPlacedOrHeld({ metadata: { annotations } }: AnyObject): boolean {
  return annotations?.[placedOnAnnotation] !== undefined || annotations?.[heldAnnotation] !== undefined
}

/** The state that a user should know of: a refusal, else a broken connection, else a list that is not complete. */
function worst(states: readonly FollowState[]): FollowState {
  const order = ['refused', 'retrying', 'listing'] as const
  return order.map((kind) => states.find((state) => state.kind === kind)).find((state) => state) ?? { kind: 'live' }
}
