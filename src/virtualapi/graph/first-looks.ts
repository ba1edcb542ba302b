// Logical clusters that nobody has looked at since this process began: something in them may be unfinished.
import type { ClusterId } from '../../apimachinery/meta/index.ts'
import { sleep } from '../../async/index.ts'
import type { Hub } from '../../store/hub/index.ts'
import type { ClusterDirectory } from '../clusters/index.ts'

/** Objects with one of these may wait for a loop: they are being deleted, or have owners, or hold a token of one. */
const deletion = '"deletionTimestamp":"'
const unfinished = [deletion, '"ownerReferences":[', '"kubernetes.io/service-account-token"']
/** What is waited for from outside, and holds the most. */
const urgent = ['namespaces', 'customresourcedefinitions.apiextensions.k8s.io']
/** Between two looks, at least; and so many times as long as the last took. */
const pauseMs = 5
const pauseFactor = 4

/** Loads what is in need of a look, one after the other; who wants to look is told by the hub. */
export async function takeFirstLooks(
  { hub, directory, looked }: { hub: Hub; directory: ClusterDirectory; looked: (id: ClusterId) => boolean },
  signal: AbortSignal,
): Promise<void> {
  const look = async (id: ClusterId): Promise<void> => {
    if (looked(id) || directory.byId(id) === undefined) return
    try {
      await hub.cluster(id, { signal })
      hub.release(id)
    } catch (error) {
      // Deleted meanwhile: nothing is left to do in it.
      if (!hub.hasEnded(id)) throw error
    }
  }
  for (const resource of urgent) {
    const keys = await hub.find({ resource, containing: [deletion] }, { signal })
    for (const cluster of new Set(keys.map((key) => key.cluster))) await look(cluster)
  }
  for (const { id } of [...directory.all()]) {
    if (looked(id)) continue
    const began = performance.now()
    const found = await hub.find({ cluster: id, containing: unfinished }, { limit: 1, signal })
    if (found.length > 0) await look(id)
    await sleep(Math.max(pauseMs, (performance.now() - began) * pauseFactor), signal, { unref: true })
  }
}
