// Writes deleted Local APIServices of built-in group versions again when a process first loads their logical cluster, as
// kube-apiserver does at its start.
import { groupResourceText, type KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { ControllerContext } from './controller-context.ts'
import { apiServices } from './resources.ts'
import { visitChanged } from './framework.ts'

/** Upstream does this within its API server. */
const fieldManager = 'kube-apiserver'
const managed = 'kube-aggregator.kubernetes.io/automanaged'

/** Visits those that were deleted before this process began, until the signal aborts. */
export async function startBuiltInRegistration(context: ControllerContext): Promise<void> {
  const resource = groupResourceText(apiServices)
  await visitChanged(context, {
    name: 'built-in-registration',
    follow: {
      [resource]: ({ key: { cluster, name }, exists, isNew }, enqueue) => {
        // Deleted while we run: it stays deleted until the next start, as upstream.
        if (!exists && isNew) enqueue({ cluster, name })
      },
    },
    visit: async ({ cluster, name }, { client, signal }) => {
      const initial = context.graph.initial({ cluster, resource, namespace: '', name })
      if (initial?.metadata.labels?.[managed] !== 'onstart') return
      const { apiVersion, kind, metadata } = initial
      const object = { apiVersion, kind, metadata: { name, labels: metadata.labels ?? {} }, spec: initial['spec'] }
      await client.create<KubeObject>(apiServices, object, { fieldManager, signal }).catch(tolerate('AlreadyExists'))
    },
  })
}
