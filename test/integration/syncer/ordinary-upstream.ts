// An ordinary cluster in the role of one logical cluster, with the fields added that our server has in lists over all
// clusters.
import { clusterIdOf, tryClusterName, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  createClient,
  httpTransport,
  loadKubeconfig,
  logicalClusterAnnotation,
  type KubeClient,
  type WatchEvent,
} from '#client/index.ts'
import type { ClusterIds } from '#syncer/index.ts'

/** A client of a test cluster; dispose of the stack to close it. */
export async function clientOf(kubeconfig: string, stack: AsyncDisposableStack): Promise<KubeClient> {
  const transport = stack.use(httpTransport(await loadKubeconfig({ file: kubeconfig }, { trusted: true })))
  return createClient(transport)
}

/** Shows the objects as `/clusters/*` does. */
export function asWildcard(client: KubeClient, cluster: string): KubeClient {
  const told = <T extends KubeObject>(object: T): T => {
    object.metadata.annotations = { ...object.metadata.annotations, [logicalClusterAnnotation]: cluster }
    return object
  }
  return new Proxy(client, {
    get(target, property) {
      if (property === 'list') {
        return async (...args: Parameters<KubeClient['list']>) => {
          const list = await target.list(...args)
          list.items.forEach(told)
          return list
        }
      }
      if (property === 'watch') {
        return async function* (...args: Parameters<KubeClient['watch']>): AsyncGenerator<WatchEvent<KubeObject>> {
          for await (const event of target.watch(...args)) {
            if (event.type !== 'BOOKMARK') told(event.object)
            yield event
          }
        }
      }
      const value: unknown = Reflect.get(target, property)
      return typeof value === 'function' ? (value.bind(target) as unknown) : value
    },
  })
}

export interface OneCluster extends ClusterIds {
  readonly id: ReturnType<typeof clusterIdOf>
  /** Forgets the name, as after a start that follows the deletion. */
  forget(): void
  /** Marks it as deleted. */
  end(): void
}

/** The ids of one logical cluster. */
export function oneCluster(name: string): OneCluster {
  if (tryClusterName(name) === undefined) throw new Error(`"${name}" is no name of a logical cluster`)
  const id = clusterIdOf(`uid of ${name}`)
  const listeners = new Set<(id: string) => void>()
  let known = true
  let gone = false
  return {
    id,
    idOf: (cluster) => (known && cluster === name ? id : undefined),
    nameOf: (one) => (known && one === id ? name : undefined),
    podSecurityOf: () => 'baseline',
    onKnown: () => () => undefined,
    isGone: (one) => gone && one === id,
    onGone(listener) {
      listeners.add(listener)
      return () => void listeners.delete(listener)
    },
    forget: () => void (known = false),
    end() {
      known = false
      gone = true
      for (const listener of listeners) listener(id)
    },
  }
}
