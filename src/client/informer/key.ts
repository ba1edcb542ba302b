// Keys of objects in an informer: `NAMESPACE/NAME`, `NAME` where there is no namespace, and `CLUSTER|...` where one
// informer sees many logical clusters.
import { logicalClusterAnnotation } from '../verbs/annotations.ts'

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
 * The name of the logical cluster an object was read from over `/clusters/*`, where the server writes it on every
 * object. Undefined elsewhere: there, the annotation would be the tenant's own word, so do not ask.
 */
export function clusterOf(object: Named): string | undefined {
  return object.metadata.annotations?.[logicalClusterAnnotation]
}

/** The key of these parts. Neither `|` nor `/` may be in a name, so it is unique. */
export function keyFor({ cluster, namespace, name }: KeyParts): string {
  const local = namespace ? `${namespace}/${name}` : name
  return cluster === undefined ? local : `${cluster}|${local}`
}

/** The key of an object; `allClusters` puts its logical cluster before it. */
export function keyOf(object: Named, { allClusters = false }: { allClusters?: boolean } = {}): string {
  const { name = '', namespace } = object.metadata
  const cluster = allClusters ? (clusterOf(object) ?? '') : undefined
  return keyFor({ name, ...(namespace ? { namespace } : {}), ...(cluster === undefined ? {} : { cluster }) })
}

/** The logical cluster in a key that has one: on whose account its object is visited. */
export function clusterInKey(key: string): string {
  return key.slice(0, Math.max(0, key.indexOf('|')))
}

/** The parts of a key that keyFor made. */
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
