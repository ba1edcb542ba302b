// What a namespace of one logical cluster may hold, from its own discovery: built-in kinds and custom ones.
import { groupVersionPath, parseApiVersion, type GroupVersionResource } from '../../apimachinery/meta/index.ts'
import { isStatusError } from '../../apimachinery/status/index.ts'
import type { KubeClient } from '../../client/index.ts'

export interface DeletableResources {
  readonly resources: readonly GroupVersionResource[]
  /** Group versions that could not be asked, with why: nobody knows then whether the namespace is empty. */
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

/** Namespaced resources with list and delete, each in its group's preferred version. Rejects when `/apis` can't be read. */
export async function deletableResources(client: KubeClient, signal: AbortSignal): Promise<DeletableResources> {
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
      // Its last CustomResourceDefinition has just gone, and its objects with it.
      if (isStatusError(error, 'NotFound')) continue
      failures.push(`${groupVersion}: ${error instanceof Error ? error.message : String(error)}`)
    }
  }
  return { resources, failures }
}
