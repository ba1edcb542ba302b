// The resources that a namespace of a logical cluster can contain, from the discovery of the logical cluster.
import { groupVersionPath, parseApiVersion, type GroupVersionResource } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { KubeClient } from '#client/index.ts'

export interface DeletableResources {
  readonly resources: readonly GroupVersionResource[]
  /** Group versions whose discovery failed, with the error: then nobody knows whether the namespace is empty. */
  readonly failures: readonly string[]
}

interface ResourceList {
  readonly resources?: readonly {
    readonly name: string
    readonly namespaced: boolean
    readonly verbs?: readonly string[]
  }[]
}
interface GroupList {
  readonly groups?: readonly { readonly name: string; readonly preferredVersion?: { readonly groupVersion: string } }[]
}

/** Namespaced resources with the verbs list and delete, in the preferred version of their group. Rejects if `/apis` fails. */
export async function deletableResources(
  client: Pick<KubeClient, 'raw'>,
  signal: AbortSignal,
): Promise<DeletableResources> {
  const { groups = [] } = (await client.raw('/apis', { signal })) as GroupList
  const groupVersions = ['v1', ...groups.flatMap(({ preferredVersion }) => preferredVersion?.groupVersion ?? [])]
  const resources: GroupVersionResource[] = []
  const failures: string[] = []
  for (const groupVersion of groupVersions) {
    const parsed = parseApiVersion(groupVersion)
    try {
      const list = (await client.raw(groupVersionPath(parsed), { signal })) as ResourceList
      for (const { name, namespaced, verbs = [] } of list.resources ?? []) {
        if (!namespaced || name.includes('/') || !verbs.includes('list') || !verbs.includes('delete')) continue
        resources.push({ ...parsed, resource: name })
      }
    } catch (error) {
      signal.throwIfAborted()
      // The last CustomResourceDefinition of the group was deleted meanwhile, and its objects with it.
      if (isStatusError(error, 'NotFound')) continue
      failures.push(`${groupVersion}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return { resources, failures }
}
