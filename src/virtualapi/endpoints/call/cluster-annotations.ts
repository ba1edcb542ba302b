// The annotations that tell, in a response over several logical clusters, where an object is. They are never stored.
import { logicalClusterAnnotation } from '#client/index.ts'
import type { Exchange } from '#virtualapi/request/exchange.ts'
import { LRUCache } from 'lru-cache'
import { annotateBytes } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'

/** As the kcp project names them; its clients read these. */
const kcpClusterAnnotation = 'kcp.io/cluster'
const kcpPathAnnotation = 'kcp.io/path'

/** The annotations of the objects of a logical cluster; those of the kcp project in the view of an export only. */
export function clusterAnnotations(
  name: string,
  path: string,
  { view }: Pick<Exchange, 'view'>,
): Record<string, string> {
  const own = { [logicalClusterAnnotation]: name }
  return view === undefined ? own : { ...own, [kcpClusterAnnotation]: name, [kcpPathAnnotation]: path }
}

const shownDefinitions = new WeakMap<ResourceDefinition, LRUCache<string, ResourceDefinition>>()
/** The number of logical clusters for which the form of one definition is kept. */
const maxKept = 500

/** The definition, whose objects are sent with the annotations of their logical cluster. */
export function withClusterAnnotations(
  definition: ResourceDefinition,
  { name, path }: { readonly name: string; readonly path: string },
  exchange: Pick<Exchange, 'view'>,
): ResourceDefinition {
  const kept = shownDefinitions.get(definition) ?? new LRUCache<string, ResourceDefinition>({ max: maxKept })
  shownDefinitions.set(definition, kept)
  let shown = kept.get(path)
  if (shown === undefined) {
    const annotations = clusterAnnotations(name, path, exchange)
    shown = { ...definition, shown: (bytes) => annotateBytes(bytes, annotations) }
    kept.set(path, shown)
  }
  return shown
}

/** Removes these annotations from an object that a client has read and now writes. */
export function dropClusterAnnotations({ metadata }: Pick<KubeObject, 'metadata'>): void {
  const { annotations } = metadata
  if (annotations === undefined) return
  const names = [logicalClusterAnnotation, kcpClusterAnnotation, kcpPathAnnotation]
  if (!names.some((name) => name in annotations)) return
  const rest = Object.fromEntries(Object.entries(annotations).filter(([name]) => !names.includes(name)))
  if (Object.keys(rest).length > 0) metadata.annotations = rest
  else delete metadata.annotations
}
