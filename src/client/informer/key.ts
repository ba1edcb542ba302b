// Keys of objects in an informer: `NAMESPACE/NAME`, or `NAME` without a namespace; with `CLUSTER|` before it in an
// informer over all logical clusters.

/** Annotation on every object in a list or watch over `/clusters/*`, with the name of its logical cluster. */
export const logicalClusterAnnotation = 'kcp.dev/logical-cluster'

interface Named {
  readonly metadata: {
    readonly name?: string
    readonly namespace?: string
    readonly annotations?: Readonly<Record<string, string>>
  }
}

export interface KeyParts {
  readonly cluster?: string
  readonly namespace?: string
  readonly name: string
}

/**
 * The name of the logical cluster of an object that was read over `/clusters/*`, where the server sets this annotation
 * on every object. Do not call it for other objects: there a tenant can write the annotation.
 */
export function clusterOf(object: Named): string | undefined {
  return object.metadata.annotations?.[logicalClusterAnnotation]
}

/** The key of these parts. Unique, because names contain neither `|` nor `/`. An empty namespace counts as none. */
export function keyFor({ cluster, namespace, name }: KeyParts): string {
  const local = namespace ? `${namespace}/${name}` : name
  return cluster === undefined ? local : `${cluster}|${local}`
}

/** The key of an object; with its logical cluster if `allClusters`. */
export function keyOf(object: Named, { allClusters = false }: { allClusters?: boolean } = {}): string {
  const { name = '', namespace } = object.metadata
  const cluster = allClusters ? (clusterOf(object) ?? '') : undefined
  return keyFor({ name, ...(namespace ? { namespace } : {}), ...(cluster === undefined ? {} : { cluster }) })
}

/** The logical cluster in a key; empty if the key has none. The usual fairness key of a queue. */
export function clusterInKey(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('|')))
}

/**
 * The namespace in a key, with the logical cluster if the key has one: `CLUSTER|NAMESPACE`, `NAMESPACE`, `CLUSTER|`,
 * ``.
 */
export function namespaceKeyOf(key: string): string {
  const slash = key.lastIndexOf('/')
  return key.slice(0, slash < 0 ? key.indexOf('|') + 1 : slash)
}

/** The parts of a key made by keyFor. */
export function parseKey(key: string): KeyParts {
  const bar = key.indexOf('|')
  const local = key.slice(bar + 1)
  const slash = local.indexOf('/')
  return {
    ...(bar < 0 ? {} : { cluster: key.slice(0, bar) }),
    ...(slash < 0 ? {} : { namespace: local.slice(0, slash) }),
    name: local.slice(slash + 1),
  }
}
