// Garbage collection over all logical clusters: one queue of objects whose owners, finalizers or dependents changed. Nothing is
// kept per logical cluster; who owns whom is read from the server's memory.
import type { OwnerReference } from '../../apimachinery/meta/index.ts'
import { createKeyQueue, runController, type Outcome } from '../../reconcile/index.ts'
import type { Loop, LoopContext } from '../start-controllers.ts'
import type { ObjectPlace } from './object-graph.ts'
import { GoneUids } from './owners.ts'
import { visitObject } from './visit-object.ts'

/** What a key of the queue asks for. */
type Task =
  | { readonly do: 'object'; readonly place: ObjectPlace }
  /** The object is gone: its dependents are looked at. */
  | { readonly do: 'gone'; readonly cluster: string; readonly uid: string }
  /** A dependent has gone: this owner may have waited for it. */
  | { readonly do: 'owner'; readonly cluster: string; readonly namespace: string; readonly owner: OwnerReference }

/** Follows every object that has owners, and every one that is being deleted with its dependents in mind. */
export async function startGarbageCollection({ graph, cluster: clientOf, log, signal }: LoopContext): Loop {
  using queue = createKeyQueue()
  const gone = new GoneUids()
  const add = (task: Task): void => queue.add(JSON.stringify(task))
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
    const cluster = task.do === 'object' ? task.place.cluster : task.cluster
    const name = graph.nameOf(cluster)
    if (name === undefined) return undefined
    switch (task.do) {
      case 'gone':
        for (const place of await graph.dependents(cluster, task.uid, waiting)) enqueue(place)
        return undefined
      case 'owner': {
        const served = await graph.resourceOf(cluster, task.owner, waiting)
        if (served === undefined) return undefined
        const namespace = served.namespaced ? task.namespace : ''
        enqueue({ cluster, resource: served.resource, namespace, name: task.owner.name })
        return undefined
      }
      case 'object': {
        const object = await graph.get(task.place, waiting)
        if (object === undefined) return undefined
        return visitObject(object, { graph, client: clientOf(name), gone, enqueue }, waiting)
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
      reconcile: (key, waiting) => visit(JSON.parse(key) as Task, waiting),
    })
  } finally {
    stop()
  }
}
