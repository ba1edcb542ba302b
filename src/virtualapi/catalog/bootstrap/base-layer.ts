// The bootstrap objects as a layer under the store: their bytes are made from shared templates, with a uid and a
// creationTimestamp that follow from the logical cluster that is read. Nothing is kept in memory per logical cluster.
import { hash } from 'node:crypto'
import { encodeJson, type ClusterId } from '#apimachinery/meta/index.ts'
import type { BaseLayer } from '#store/watch-cache/index.ts'
import type { ObjectKey } from '#store/index.ts'
import type { ClusterDirectory } from '#virtualapi/request/logical-cluster.ts'
import { bootstrapObjects, type ApiAddress, type BootstrapObject } from './bootstrap-objects.ts'
import { placeholders } from './placeholders.ts'

interface Template {
  readonly resource: string
  readonly namespace: string
  readonly name: string
  /** JSON before the value of uid. */
  readonly head: Buffer
  /** JSON after the value of creationTimestamp. */
  readonly tail: Buffer
  /** True: the tail contains placeholders. */
  readonly isFilled: boolean
  readonly path: string
}

interface ResourceTemplates {
  /** All templates of the resource, in the order of their keys. */
  readonly all: readonly Template[]
  readonly byNamespace: ReadonlyMap<string, readonly Template[]>
  readonly byKey: ReadonlyMap<string, Template>
}

/** Builds the templates once; `get` only inserts uid and creationTimestamp. */
export function createBaseLayer(deps: {
  /** Returns the creationTimestamp of a logical cluster. */
  readonly directory: Pick<ClusterDirectory, 'byId'>
  /** Content of the ConfigMap `kube-root-ca.crt`, PEM. */
  readonly rootCa: string
  /** The address behind the Service `kubernetes`. */
  readonly address?: ApiAddress
  /** True: only the objects that kube-apiserver itself creates. Default: also those of a cluster's controllers. */
  readonly isPlain?: boolean
  /** The authority of front proxies of a logical cluster, PEM. */
  readonly frontProxyCa: (cluster: ClusterId) => string
}): BaseLayer {
  const templates = templatesOf(
    bootstrapObjects({
      rootCa: deps.rootCa,
      ...(deps.address && { address: deps.address }),
      isPlain: deps.isPlain ?? false,
    }),
  )
  return {
    resources: [...templates.keys()].sort(),
    get: ({ cluster, resource, namespace, name }) => {
      const template = templates.get(resource)?.byKey.get(`${namespace}/${name}`)
      // The logical cluster was just deleted, and these objects with it, so no client sees this time.
      const created = deps.directory.byId(cluster)?.creationTimestamp ?? '1970-01-01T00:00:00Z'
      return template === undefined
        ? undefined
        : bytesOf(template, { cluster, created, frontProxyCa: () => deps.frontProxyCa(cluster) })
    },
    keys: (cluster, resource, namespace) => {
      const found = templates.get(resource)
      const chosen = namespace === undefined ? found?.all : found?.byNamespace.get(namespace)
      return (chosen ?? []).map((template): ObjectKey => ({
        cluster,
        resource,
        namespace: template.namespace,
        name: template.name,
      }))
    },
  }
}

/**
 * The uid of a bootstrap object. It is derived from the id of the logical cluster, not from its name. Otherwise a
 * logical cluster that is created again would accept the ServiceAccount tokens of its predecessor.
 */
export function baseUid(cluster: ClusterId, path: string): string {
  const hex = hash('sha256', `kcp.dev/base/${cluster}/${path}`)
  // Version 8 (custom) and variant bits of RFC 9562, so that UUID parsers accept it.
  const variant = ((parseInt(hex[16] ?? '0', 16) & 3) | 8).toString(16)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-8${hex.slice(13, 16)}-${variant}${hex.slice(17, 20)}-${hex.slice(20, 32)}`
}

function bytesOf(
  { head, tail: shared, isFilled, path }: Template,
  { cluster, created, frontProxyCa }: { cluster: ClusterId; created: string; frontProxyCa: () => string },
): Uint8Array {
  const tail = isFilled ? filled(shared, created, frontProxyCa) : shared
  const identity = `${baseUid(cluster, path)}","creationTimestamp":"${created}`
  const bytes = Buffer.allocUnsafe(head.length + identity.length + tail.length)
  head.copy(bytes)
  bytes.write(identity, head.length, 'latin1')
  tail.copy(bytes, head.length + identity.length)
  return bytes
}

function filled(tail: Buffer, created: string, frontProxyCa: () => string): Buffer {
  const text = tail.toString().replaceAll(placeholders.creationTime, created)
  return Buffer.from(text.replace(placeholders.frontProxyCa, () => JSON.stringify(frontProxyCa()).slice(1, -1)))
}

function templatesOf(objects: readonly BootstrapObject[]): Map<string, ResourceTemplates> {
  const sorted = objects.map(templateOf).sort((a, b) => compare(a.namespace, b.namespace) || compare(a.name, b.name))
  const grouped = Map.groupBy(sorted, (template) => template.resource)
  return new Map(
    [...grouped].map(([resource, all]) => [
      resource,
      {
        all,
        byNamespace: Map.groupBy(all, (template) => template.namespace),
        byKey: new Map(all.map((template) => [`${template.namespace}/${template.name}`, template])),
      },
    ]),
  )
}

function templateOf({ resource, object }: BootstrapObject): Template {
  const { kind, apiVersion, metadata, ...rest } = object
  const { name = '', namespace = '', ...others } = metadata
  const placeholder = '\u0001'
  // kind, apiVersion, metadata in this order: the server inserts the resourceVersion after `"metadata":{`.
  const text = encodeJson({
    kind,
    apiVersion,
    metadata: { name, ...(namespace === '' ? {} : { namespace }), uid: placeholder, ...others },
    ...rest,
  })
  const printed = JSON.stringify(placeholder).slice(1, -1)
  const at = text.indexOf(printed)
  return {
    resource,
    namespace,
    name,
    head: Buffer.from(text.slice(0, at)),
    tail: Buffer.from(text.slice(at + printed.length)),
    isFilled: Object.values(placeholders).some((one) => text.includes(one)),
    path: `${resource}/${namespace}/${name}`,
  }
}

/** Compares by UTF-16 code units, the order of keys. */
function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0
}
