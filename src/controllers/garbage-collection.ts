// Garbage collection in all logical clusters. One queue holds the objects whose owners, finalizers or dependents
// changed; logical clusters are served in rotation. Owners and dependents are read from the server's memory
// (ObjectGraph).
import { parseJsonText } from '#apimachinery/json/index.ts'
import type { OwnerReference } from '#apimachinery/meta/index.ts'
import { clusterInKey } from '#client/index.ts'
import { createKeyQueue, runController, type ReconcileResult } from '#reconcile/index.ts'
import type { DeletedObject, ObjectKey } from '#reconcile/object-graph/index.ts'
import { inBatches, releaseIfUnblocked, reconcileObject, type CollectContext } from './collect-object.ts'
import type { ControllerContext } from './framework.ts'
import { GoneOwners } from './garbage-owners.ts'

/** The task in a key of the queue. */
type Task =
  | { readonly do: 'object'; readonly object: ObjectKey }
  /** An object was deleted: reconcile its dependents. */
  | ({ readonly do: 'gone' } & DeletedObject)
  /** A dependent was deleted: this owner may have waited for it. */
  | { readonly do: 'owner'; readonly cluster: string; readonly namespace: string; readonly owner: OwnerReference }

/**
 * Reconciles every object with owners, and every object whose deletion waits for its dependents, until the signal
 * aborts.
 */
export async function startGarbageCollection(context: ControllerContext): Promise<void> {
  const { graph, cluster: clientOf, log, signal } = context
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const gone = new GoneOwners()
  const add = (task: Task): void => queue.add(keyOf(task))
  const enqueue = (object: ObjectKey): void => add({ do: 'object', object })
  const stop = graph.observe({
    onChanged: enqueue,
    onDeleted: (object) => add({ do: 'gone', ...object }),
    onOwnersRemoved: (cluster, namespace, owners) => {
      for (const { apiVersion, kind, name, uid } of owners)
        add({ do: 'owner', cluster, namespace, owner: { apiVersion, kind, name, uid } })
    },
  })
  const reconcile = async (key: string, signal: AbortSignal): Promise<ReconcileResult | undefined> => {
    const task = taskOf(key)
    const name = graph.nameOf(clusterOf(task))
    return name === undefined ? undefined : runTask(task, { graph, client: clientOf(name), gone, enqueue }, signal)
  }
  try {
    await runController({ name: 'garbage-collection', queue, workers: 8, log, signal, reconcile })
  } finally {
    stop()
  }
}

async function runTask(task: Task, context: CollectContext, signal: AbortSignal): Promise<ReconcileResult | undefined> {
  const { graph, enqueue } = context
  switch (task.do) {
    case 'gone': {
      const dependents = await graph.dependents(task.cluster, task.uid, signal)
      if (dependents.length > 0) context.gone.add(task)
      for await (const dependent of inBatches(dependents, signal)) enqueue(dependent)
      return undefined
    }
    case 'owner': {
      const { cluster, owner } = task
      const served = await graph.resourceOf(cluster, owner, signal)
      if (served === undefined) return undefined
      const namespace = served.namespaced ? task.namespace : ''
      const object = await graph.get({ cluster, resource: served.resource, namespace, name: owner.name }, signal)
      if (object?.metadata.uid === owner.uid) await releaseIfUnblocked(object, context, signal)
      return undefined
    }
    case 'object': {
      const object = await graph.get(task.object, signal)
      return object && reconcileObject(object, context, signal)
    }
  }
}

function clusterOf(task: Task): string {
  return task.do === 'object' ? task.object.cluster : task.cluster
}

/** `CLUSTER|JSON`: ids of logical clusters contain no `|`. */
function keyOf(task: Task): string {
  return `${clusterOf(task)}|${JSON.stringify(task)}`
}

function taskOf(key: string): Task {
  return parseJsonText(key.slice(key.indexOf('|') + 1)) as unknown as Task
}
