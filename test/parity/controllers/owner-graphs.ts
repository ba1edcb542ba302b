// Random graphs of owners over scopes, namespaces, kinds and uids, built and deleted on one server.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { isJsonObject } from '#apimachinery/meta/index.ts'
import type { Dice } from '#test/parity/generated/dice.ts'
import { valueAt } from '#test/parity/support/session.ts'
import type { Side } from '#test/parity/support/side.ts'

const kinds = [
  { apiVersion: 'v1', kind: 'ConfigMap', path: '/api/v1', resource: 'configmaps', namespaced: true },
  { apiVersion: 'v1', kind: 'Secret', path: '/api/v1', resource: 'secrets', namespaced: true },
  {
    ...{ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', path: '/apis/coordination.k8s.io/v1' },
    ...{ resource: 'leases', namespaced: true },
  },
  {
    ...{ apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'ClusterRole', path: '/apis/rbac.authorization.k8s.io/v1' },
    ...{ resource: 'clusterroles', namespaced: false },
  },
  { apiVersion: 'v1', kind: 'Namespace', path: '/api/v1', resource: 'namespaces', namespaced: false },
] as const

/** How a reference may be wrong, or unusual. */
const forms = [
  ...['right', 'right', 'right', 'right', 'wrong name', 'wrong kind', 'wrong uid', 'unserved group'],
  ...['unserved version', 'lower case', 'cluster-scoped kind'],
] as const

interface Link {
  readonly to: number
  readonly form: (typeof forms)[number]
  readonly block: boolean
}
export interface GraphNode {
  readonly name: string
  readonly type: (typeof kinds)[number]
  readonly namespace: string
  readonly links: readonly Link[]
}
export interface OwnerGraph {
  readonly namespaces: readonly [string, string]
  readonly nodes: readonly GraphNode[]
  /** Deleted in this order, each after the effects of the one before. */
  readonly deletions: readonly { readonly node: number; readonly policy: string }[]
}

/** A graph without cycles: objects name earlier ones, each at most once. Their order of effects would else decide. */
export function randomGraph(
  dice: Dice,
  id: string,
  { size, deletions }: { size: number; deletions: number },
): OwnerGraph {
  const namespaces = [`${id}-a`, `${id}-b`] as const
  const nodes: GraphNode[] = []
  for (let i = 0; i < size; i++) {
    const type = dice.pick(kinds)
    const namespace = type.namespaced ? dice.pick(namespaces) : ''
    const owners = new Set(i === 0 ? [] : Array.from({ length: dice.below(4) }, () => dice.below(i)))
    const links = [...owners].map((to): Link => {
      const owner = nodes[to]
      // An owner in the foreground waits for ever for a blocking dependent that it cannot own: kcp does not block
      // there.
      const mayBlock = owner?.namespace === '' || owner?.namespace === namespace
      return { to, form: dice.pick(forms), block: mayBlock && dice.once(2) }
    })
    // Such a reference ends the look of kube-controller-manager at the others, until something else makes it look
    // again.
    const invalid = links.find(({ to }) => namespace === '' && nodes[to]?.namespace !== '')
    nodes.push({ name: `${id}-${i}`, type, namespace, links: invalid === undefined ? links : [invalid] })
  }
  const chosen = new Set(Array.from({ length: deletions }, () => dice.below(size)))
  return {
    namespaces,
    nodes,
    deletions: [...chosen].map((node) => ({
      node,
      policy: dice.pick(['Background', 'Background', 'Orphan', 'Foreground']),
    })),
  }
}

const textOf = (value: JsonValue | undefined): string => (typeof value === 'string' ? value : '')

const collection = ({ type, namespace }: Pick<GraphNode, 'type' | 'namespace'>): string =>
  `${type.path}${type.namespaced ? `/namespaces/${namespace}` : ''}/${type.resource}`

/** One server with the graph in it. */
export class BuiltGraph {
  readonly #side: Side
  readonly #graph: OwnerGraph
  readonly #uids: string[] = []

  constructor(side: Side, graph: OwnerGraph) {
    this.#side = side
    this.#graph = graph
  }

  async build(): Promise<void> {
    for (const name of this.#graph.namespaces)
      await this.#post('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
    for (const node of this.#graph.nodes) {
      const { apiVersion, kind } = node.type
      const ownerReferences = node.links.map((link) => this.#reference(link))
      const labels = { graph: this.#graph.namespaces[0] }
      const made = await this.#post(collection(node), {
        ...{ apiVersion, kind, metadata: { name: node.name, labels, ownerReferences } },
      })
      this.#uids.push(textOf(valueAt(made, 'metadata.uid')))
    }
  }

  #reference({ to, form, block }: Link): JsonObject {
    const { type, name } = this.#graph.nodes[to]!
    const right = {
      apiVersion: type.apiVersion,
      kind: type.kind,
      name,
      uid: this.#uids[to]!,
      blockOwnerDeletion: block,
    }
    switch (form) {
      case 'right':
        return right
      case 'wrong name':
        return { ...right, name: `${name}-not` }
      case 'wrong kind':
        return { ...right, apiVersion: 'v1', kind: 'ServiceAccount' }
      case 'wrong uid':
        return { ...right, uid: `11111111-2222-3333-4444-${String(to).padStart(12, '0')}` }
      case 'unserved group':
        return { ...right, apiVersion: 'none.example.com/v1' }
      case 'unserved version':
        return { ...right, apiVersion: right.apiVersion.replace(/v1$/, 'v7') }
      case 'lower case':
        return { ...right, kind: right.kind.toLowerCase() }
      case 'cluster-scoped kind':
        return { ...right, apiVersion: 'v1', kind: 'PersistentVolume' }
    }
  }

  async delete({ node, policy }: { readonly node: number; readonly policy: string }): Promise<void> {
    const deleted = this.#graph.nodes[node]!
    const body = { kind: 'DeleteOptions', apiVersion: 'v1', propagationPolicy: policy }
    await this.#side.request('DELETE', `${collection(deleted)}/${deleted.name}`, { body })
  }

  /** Deletes the owner of a chain of objects and waits for the last one: the collector works, and has worked since. */
  async sentinel(name: string, until: (probe: () => Promise<boolean>) => Promise<unknown>): Promise<void> {
    const path = `/api/v1/namespaces/${this.#graph.namespaces[0]}/configmaps`
    let ownerReferences: JsonObject[] = []
    for (const link of ['first', 'second', 'third']) {
      const metadata = { name: `${name}-${link}`, ownerReferences }
      const { uid } = (await this.#post(path, { apiVersion: 'v1', kind: 'ConfigMap', metadata }))[
        'metadata'
      ] as JsonObject
      ownerReferences = [{ apiVersion: 'v1', kind: 'ConfigMap', name: metadata.name, uid: uid ?? null }]
    }
    await this.#side.request('DELETE', `${path}/${name}-first`)
    await until(async () => (await this.#side.request('GET', `${path}/${name}-third`)).status === 404)
  }

  /** What is left of each object: its owners by number, and whether it is being deleted. */
  async state(): Promise<Record<string, string>> {
    const state: Record<string, string> = {}
    const places = [...this.#graph.namespaces, ''].flatMap((namespace) =>
      kinds.filter(({ namespaced }) => namespaced === (namespace !== '')).map((type) => ({ type, namespace })),
    )
    for (const place of places) {
      const selector = `?labelSelector=graph%3D${this.#graph.namespaces[0]}`
      const { text } = await this.#side.request('GET', collection(place) + selector)
      const { items } = JSON.parse(text) as { items: { metadata: JsonObject }[] }
      for (const { metadata } of items) state[textOf(metadata['name'])] = this.#stateOf(metadata)
    }
    return state
  }

  #stateOf({ ownerReferences = [], deletionTimestamp, finalizers = [] }: JsonObject): string {
    const owners = (Array.isArray(ownerReferences) ? ownerReferences : []).filter(isJsonObject)
    const named = owners.map(
      ({ kind, uid, blockOwnerDeletion }) =>
        `${textOf(kind)} ${this.#uids.indexOf(textOf(uid))}${blockOwnerDeletion === true ? ' blocks' : ''}`,
    )
    const deleting = deletionTimestamp === undefined ? '' : ` deleting ${JSON.stringify(finalizers)}`
    return `of [${named.join(', ')}]${deleting}`
  }

  async #post(path: string, body: JsonObject): Promise<JsonObject> {
    const { status, text } = await this.#side.request('POST', path, { body })
    if (status !== 201) throw new Error(`${path}: ${text}`)
    return JSON.parse(text) as JsonObject
  }
}
