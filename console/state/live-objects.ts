// All objects of a kind without a namespace, kept as they are on the server while a page shows them.
import { useSignal, type Signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { follow, type FollowState } from '#console/kube/follow.ts'
import { ObjectStore } from '#console/kube/object-store.ts'

export interface LiveObjects<T> {
  /** By name. */
  readonly objects: readonly T[]
  readonly state: FollowState
}

/** Lists and watches the objects of this path. */
export function useLiveObjects<T extends { readonly metadata: { readonly name: string } }>(
  path: string,
  kind: string,
): Signal<LiveObjects<T>> {
  const live = useSignal<LiveObjects<T>>({ objects: [], state: { kind: 'listing' } })
  useEffect(() => {
    const life = new AbortController()
    const store = new ObjectStore({ kind })
    const changed = (state: FollowState): void => {
      const objects = [...store.values()] as unknown as T[]
      objects.sort((a, b) => (a.metadata.name < b.metadata.name ? -1 : 1))
      live.value = { objects, state }
    }
    void follow({ path, accept: 'application/json', sink: store, changed, signal: life.signal })
    return () => life.abort()
  }, [path, kind])
  return live
}
