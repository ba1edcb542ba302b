// Restores the FlowSchemas and PriorityLevelConfigurations that every logical cluster is created with, as
// kube-apiserver does: deleted ones come back, and changed ones too unless their annotation says that they are kept by
// hand.
import { tryParseBool } from '#apimachinery/text/index.ts'
import { isDeepStrictEqual } from 'node:util'
import { groupResourceText, type GroupVersionResource, type KubeObject } from '#apimachinery/meta/index.ts'
import { tolerate } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'
import { type ChangedOptions, type ControllerContext, reconcileChanged } from './framework.ts'
import { flowSchemas, priorityLevels } from './resources.ts'

const fieldManager = 'api-priority-and-fairness-config-producer-v1'
const autoUpdate = 'apf.kubernetes.io/autoupdate-spec'
/**
 * Delay before an object is restored, because a client that replaces an object deletes it first. Upstream checks once a
 * minute.
 */
const restoreMs = 2000
/** Names of the objects whose spec is always restored. */
const mandatory = new Set(['exempt', 'catch-all'])
const kinds = new Map([flowSchemas, priorityLevels].map((gvr) => [groupResourceText(gvr), gvr]))

/** Reconciles the objects that change or are deleted, until the signal aborts. */
export async function startFlowDefaults(context: ControllerContext): Promise<void> {
  const { graph } = context
  const follow: ChangedOptions['follow'][string] = ({ key }, enqueue) => {
    // The key has the resource in place of a namespace.
    if (graph.initial(key) !== undefined)
      enqueue({ cluster: key.cluster, namespace: key.resource, name: key.name }, restoreMs)
  }
  await reconcileChanged(context, {
    name: 'flow-defaults',
    follow: Object.fromEntries([...kinds.keys()].map((resource) => [resource, follow])),
    reconcile: async ({ cluster, namespace: resource = '', name }, { client, signal }) => {
      const gvr = kinds.get(resource)
      const initial = graph.initial({ cluster, resource, namespace: '', name })
      if (gvr !== undefined && initial !== undefined) await restore(client, { gvr, name, initial }, signal)
    },
  })
}

async function restore(
  client: KubeClient,
  { gvr, name, initial }: { gvr: GroupVersionResource; name: string; initial: KubeObject },
  signal: AbortSignal,
): Promise<void> {
  const current = await client.tryGet<KubeObject>(gvr, { name }, { signal })
  if (current === undefined) {
    const { kind, apiVersion, metadata } = initial
    const object = {
      kind,
      apiVersion,
      metadata: { name, annotations: metadata.annotations ?? {} },
      spec: initial['spec'],
    }
    await client.create<KubeObject>(gvr, object, { fieldManager, signal }).catch(tolerate('AlreadyExists'))
    return
  }
  const restored = restoredFrom(current, initial)
  // A change meanwhile causes another reconcile.
  if (restored !== undefined)
    await client.update(gvr, restored, { fieldManager, signal }).catch(tolerate('Conflict', 'NotFound'))
}

/** The restored object; undefined if nothing has to change. */
function restoredFrom(current: KubeObject, initial: KubeObject): KubeObject | undefined {
  const { metadata } = current
  const { annotations = {}, generation = 0, name = '' } = metadata
  const given = tryParseBool(annotations[autoUpdate] ?? '')
  const isKept = mandatory.has(name) || (given ?? generation === 1)
  const spec = isKept ? initial['spec'] : current['spec']
  if (given === isKept && isDeepStrictEqual(spec, current['spec'])) return undefined
  return { ...current, metadata: { ...metadata, annotations: { ...annotations, [autoUpdate]: String(isKept) } }, spec }
}
