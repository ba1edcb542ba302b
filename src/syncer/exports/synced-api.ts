// One exported API while its definition in the member is known: its objects upstream and their copies.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import {
  createInformer,
  namespaceKeyOf,
  ObjectIndex,
  parseKey,
  withoutManagedFields,
  type Informer,
} from '#client/index.ts'
import { managedLabel, type ExportedInformer, type ExportedObjects } from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import { Scope } from '#syncer/context/scope.ts'
import type { SyncContext } from '#syncer/context/sync-context.ts'
import { clusterScopedName, upstreamOfCopy } from './copy-name.ts'

const backoff = { firstMs: 100, maxMs: 5000 }

export interface SyncedApi extends AsyncDisposable {
  /** The version is that in which the member is watched. */
  readonly gvr: GroupVersionResource
  readonly isNamespaced: boolean
  readonly objects: ExportedInformer
  /** The objects upstream by `CLUSTER|NAMESPACE`, and by name of the logical cluster. */
  readonly groups: ExportedObjects['groups']
  readonly copies: Informer<KubeObject>
  /** The copies by namespace in the member, and by id of the logical cluster. */
  readonly copyGroups: ObjectIndex
  /** Namespace and name of a copy; undefined while the id of the logical cluster is not known. */
  copyRef(scope: Scope, name: string): { readonly namespace?: string; readonly name: string } | undefined
}

export interface SyncedApiOptions {
  readonly gvr: GroupVersionResource
  readonly isNamespaced: boolean
  readonly objects: ExportedObjects
  /** Asks for a reconcile of the object with this key upstream. */
  readonly enqueue: (key: string) => void
  readonly life: AbortSignal
}

/** Resolves when the copies in the member are known. */
export async function syncApi(
  context: SyncContext,
  { gvr, isNamespaced, objects: { informer: objects, groups }, enqueue, life }: SyncedApiOptions,
  signal: AbortSignal,
): Promise<SyncedApi> {
  const { downstream: client, log } = context
  const copies = createInformer<KubeObject>({
    ...{ client, gvr, backoff, log, signal: life },
    labelSelector: `${managedLabel}=true`,
    transform: withoutManagedFields,
  })
  const copyGroups = new ObjectIndex(copies, (key, copy) => {
    const id = locatorOf(copy)?.clusterId
    return id === undefined ? [namespaceKeyOf(key)] : [namespaceKeyOf(key), id]
  })
  await copies.synced(signal)
  const add = (key: string): void => {
    enqueue(key)
    const { cluster = '', namespace = '' } = parseKey(key)
    if (namespace !== '') context.enqueue({ kind: 'namespace', cluster, namespace, name: namespace })
  }
  const ends = [
    objects.onChange(({ key }) => add(key)),
    copies.onChange(({ key, before, after }) => {
      const found = Scope.ofMember(context, parseKey(key).namespace ?? '')
      const copy = after ?? before
      const cluster = found?.cluster ?? clusterOfCopy(context, copy)
      const upstream = copy && cluster !== undefined ? upstreamOfCopy(copy, cluster) : undefined
      if (upstream !== undefined) add(upstream)
      if (found !== undefined) add(`${found.cluster}|${found.namespace}/${parseKey(key).name}`)
    }),
  ]
  return {
    ...{ gvr, isNamespaced, objects, groups, copies, copyGroups },
    copyRef(scope, name) {
      const { clusterId, memberNamespace: namespace } = scope
      if (clusterId === undefined || namespace === undefined) return undefined
      return isNamespaced ? { namespace, name } : { name: clusterScopedName(clusterId, name) }
    },
    async [Symbol.asyncDispose]() {
      for (const end of ends) end()
      copyGroups[Symbol.dispose]()
      await copies[Symbol.asyncDispose]()
    },
  }
}

function clusterOfCopy({ upstream }: SyncContext, copy: Parameters<typeof locatorOf>[0]): string | undefined {
  const id = locatorOf(copy)?.clusterId
  return id === undefined ? undefined : upstream.ids.nameOf(id)
}
