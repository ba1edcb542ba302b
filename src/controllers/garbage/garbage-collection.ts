// Garbage collection over all logical clusters: one queue of objects whose owners, finalizers or dependents changed, from which
// logical clusters are served in rotation. Nothing is kept per logical cluster; who owns whom is read from the server's memory.
import type { OwnerReference } from '../../apimachinery/meta/index.ts'
import { clusterInKey } from '../../client/index.ts'
import { createKeyQueue, runController, type Outcome } from '../../reconcile/index.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'
import { inParts } from './in-parts.ts'
import type { ObjectPlace } from './object-graph.ts'
import { GoneUids } from './owners.ts'
import { letGoWhereNothingBlocks, visitObject, type VisitContext } from './visit-object.ts'

/** What a key of the queue asks for. */
type Task =
  | { readonly do: 'object'; readonly place: ObjectPlace }
  /** The object is gone: its dependents are looked at. */
  | { readonly do: 'gone'; readonly cluster: string; readonly uid: string }
  /** A dependent has gone: this owner may have waited for it. */
  | { readonly do: 'owner'; readonly cluster: string; readonly namespace: string; readonly owner: OwnerReference }

/** Follows every object that has owners, and every one that is being deleted with its dependents in mind. */
export async function startGarbageCollection({ graph, cluster: clientOf, log, signal }: LoopContext): Loop {
  using queue = createKeyQueue({ fairnessKey: clusterInKey })
  const gone = new GoneUids()
  const add = (task: Task): void => queue.add(keyOf(task))
  const enqueue = (place: ObjectPlace): void => add({ do: 'object', place })
  const stop = graph.observe({
    touched: enqueue,
    gone: (cluster, uid) => {
      gone.add(cluster, uid)
      add({ do: 'gone', cluster, uid })
    },
    released: (cluster, namespace, owners) => {
      for (const { apiVersion, kind, name, uid } of owners)
        add({ do: 'owner', cluster, namespace, owner: { apiVersion, kind, name, uid } })
    },
  })

  const visit = async (task: Task, waiting: AbortSignal): Promise<Outcome | undefined> => {
    const cluster = clusterOf(task)
    const name = graph.nameOf(cluster)
    if (name === undefined) return undefined
    const context: VisitContext = { graph, client: clientOf(name), gone, enqueue }
    switch (task.do) {
      case 'gone':
        for await (const place of inParts(await graph.dependents(cluster, task.uid, waiting), waiting)) enqueue(place)
        return undefined
      case 'owner': {
        const served = await graph.resourceOf(cluster, task.owner, waiting)
        if (served === undefined) return undefined
        const namespace = served.namespaced ? task.namespace : ''
        const place = { cluster, resource: served.resource, namespace, name: task.owner.name }
        const owner = await graph.get(place, waiting)
        if (owner?.metadata.uid === task.owner.uid) await letGoWhereNothingBlocks(owner, context, waiting)
        return undefined
      }
      case 'object': {
        const object = await graph.get(task.place, waiting)
        return object && visitObject(object, context, waiting)
      }
    }
  }

  try {
    await runController({
      name: 'garbage-collection',
      queue,
      workers: 8,
      log,
      signal,
      reconcile: (key, waiting) => visit(taskOf(key), waiting),
    })
  } finally {
    stop()
  }
}

function clusterOf(task: Task): string {
  return task.do === 'object' ? task.place.cluster : task.cluster
}

/** `CLUSTER|...`: no id has a bar in it. */
function keyOf(task: Task): string {
  return `${clusterOf(task)}|${JSON.stringify(task)}`
}

function taskOf(key: string): Task {
  return JSON.parse(key.slice(key.indexOf('|') + 1)) as Task
}
