// After a start, loads the logical clusters in which controllers may have unfinished work.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { sleep } from '#async/index.ts'
import type { WatchCache } from '#store/watch-cache/index.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'

/**
 * Texts of objects that may need a controller: deleted and owned objects, ServiceAccount token Secrets, Jobs that
 * expire.
 */
const deletion = '"deletionTimestamp":"'
const unfinished = [
  deletion,
  '"ownerReferences":[',
  '"kubernetes.io/service-account-token"',
  '"ttlSecondsAfterFinished":',
]
/** Resources whose deletion is finished first, because clients wait for it and because it deletes the most objects. */
const urgent = ['namespaces', 'customresourcedefinitions.apiextensions.k8s.io']
/**
 * The pause between two logical clusters: at least `pauseMs`, and `pauseFactor` times the time that the last logical
 * cluster took.
 */
const pauseMs = 5
const pauseFactor = 4

/**
 * Loads the logical clusters with unfinished work, one after the other. The watch cache notifies its observers of each
 * load.
 */
export async function loadUnfinishedClusters(
  {
    watchCache,
    directory,
    isDone,
    searched,
  }: {
    watchCache: WatchCache
    directory: ClusterDirectory
    isDone: (id: ClusterId) => boolean
    /** The function adds the logical clusters that it has searched. */
    searched: Set<ClusterId>
  },
  signal: AbortSignal,
): Promise<void> {
  const load = async (id: ClusterId): Promise<void> => {
    if (isDone(id) || directory.byId(id) === undefined) return
    try {
      await watchCache.cluster(id, { signal })
      watchCache.release(id)
    } catch (error) {
      // The logical cluster was deleted meanwhile.
      if (!watchCache.hasEnded(id)) throw error
    }
  }
  for (const resource of urgent) {
    const keys = await watchCache.find({ resource, containing: [deletion] }, { signal })
    for (const cluster of new Set(keys.map((key) => key.cluster))) await load(cluster)
  }
  for (const { id } of [...directory.all()]) {
    if (isDone(id)) continue
    const began = performance.now()
    const found = await watchCache.find({ cluster: id, containing: unfinished }, { limit: 1, signal })
    if (found.length > 0) await load(id)
    searched.add(id)
    await sleep(Math.max(pauseMs, (performance.now() - began) * pauseFactor), signal, { unref: true })
  }
}
