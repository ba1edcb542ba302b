// Names of copies of custom resources in a member. A copy without a namespace is called `ID-NAME`, so that logical
// clusters do not share names.
import type { ClusterId } from '#apimachinery/meta/index.ts'
import { keyFor } from '#client/index.ts'
import { contentHash } from '#crds/index.ts'
import { locatorOf } from '#syncer/context/locator.ts'
import type { CachedObject } from '#syncer/context/resources.ts'

const maxLength = 253

/** The name of the copy of an object without a namespace. */
export function clusterScopedName(id: ClusterId, name: string): string {
  const whole = `${id}-${name}`
  return whole.length <= maxLength ? whole : `${whole.slice(0, maxLength - 11)}-${contentHash(name).slice(0, 10)}`
}

/** The key of the object in its logical cluster that this is a copy of, as its locator says. */
export function upstreamOfCopy(copy: CachedObject, cluster: string): string | undefined {
  const locator = locatorOf(copy)
  return locator && keyFor({ cluster, namespace: locator.namespace, name: locator.name })
}
