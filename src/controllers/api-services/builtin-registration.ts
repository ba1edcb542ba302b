// Writes deleted Local APIServices of built-in group versions again when a process first loads their logical cluster, as
// kube-apiserver does at its start.
import { groupResourceText, type KubeObject } from '../../apimachinery/meta/index.ts'
import { tolerate } from '../../apimachinery/status/index.ts'
import { clusterInKey, keyFor, parseKey } from '../../client/index.ts'
import { createKeyQueue, runController } from '../../reconcile/index.ts'
import type { ControllerContext } from '../context/controller-context.ts'
import { apiServices } from '../context/resources.ts'

/** Upstream does this within its API server. */
const fieldManager = 'kube-apiserver'
const managed = 'kube-aggregator.kubernetes.io/automanaged'

/** Visits those that were deleted before this process began, until the signal aborts. */
export async function startBuiltInRegistration({ graph, clientOf, log, signal }: ControllerContext): Promise<void> {
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const stop = graph.follow(groupResourceText(apiServices), ({ key, exists, isNew }) => {
    // Deleted while we run: it stays deleted until the next start, as upstream.
    if (!exists && isNew) queue.add(keyFor({ cluster: key.cluster, name: key.name }))
  })
  await runController({
    name: 'built-in-registration',
    queue,
    log,
    signal,
    reconcile: async (key, visit) => {
      const { cluster = '', name } = parseKey(key)
      const initial = graph.initial({ cluster, resource: groupResourceText(apiServices), namespace: '', name })
      if (initial?.metadata.labels?.[managed] !== 'onstart') return
      const { apiVersion, kind, metadata } = initial
      const object = { apiVersion, kind, metadata: { name, labels: metadata.labels ?? {} }, spec: initial['spec'] }
      await clientOf(cluster)
        ?.create<KubeObject>(apiServices, object, { fieldManager, signal: visit })
        .catch(tolerate('AlreadyExists'))
    },
  })
  stop()
}
