import { expect } from 'chai'
import type { KubeObject, ObjectMeta, OwnerReference } from '#apimachinery/meta/index.ts'
import type { GraphObject, ServedResource } from '#reconcile/object-graph/index.ts'
import { GoneOwners, isDeletingInForeground, ownersOf } from './garbage-owners.ts'

describe('the owners of an object', () => {
  const { signal } = new AbortController()
  const configMaps: ServedResource = {
    resource: 'configmaps',
    gvr: { group: '', version: 'v1', resource: 'configmaps' },
    namespaced: true,
  }
  const nodes: ServedResource = {
    resource: 'nodes',
    gvr: { group: '', version: 'v1', resource: 'nodes' },
    namespaced: false,
  }
  const reference = (kind: string, name: string, uid: string): OwnerReference => ({ apiVersion: 'v1', kind, name, uid })
  const dependent = (namespace: string, ownerReferences: OwnerReference[]): GraphObject => ({
    ...configMaps,
    key: { cluster: 'id', resource: 'configmaps', namespace, name: 'dependent' },
    apiVersion: 'v1',
    kind: 'ConfigMap',
    metadata: { name: 'dependent', uid: 'dependent', ownerReferences },
  })

  /** Objects by `NAMESPACE/NAME`; counts the questions. */
  class Cluster {
    asked = 0
    readonly gone = new GoneOwners()
    searched = 0
    readonly #objects: Record<string, ObjectMeta>
    constructor(objects: Record<string, ObjectMeta>) {
      this.#objects = objects
    }
    readonly client = {
      tryGet: async <T extends KubeObject>(_: unknown, ref: { namespace?: string; name: string }) => {
        this.asked++
        const metadata = this.#objects[`${ref.namespace ?? ''}/${ref.name}`]
        return metadata && ({ apiVersion: 'v1', kind: 'Any', metadata } as unknown as T)
      },
    }
    readonly graph = {
      resourceOf: async (_: string, { kind }: { kind: string }) => ({ ConfigMap: configMaps, Node: nodes })[kind],
      namespaceOf: async (_: string, _resource: string, uid: string) => {
        this.searched++
        const found = Object.entries(this.#objects).find(([, metadata]) => metadata.uid === uid)
        return found?.[0].split('/')[0]
      },
    }
    async statesOf(object: GraphObject): Promise<string[]> {
      const owners = await ownersOf(object, this, signal)
      return owners.map(({ state, wrongNamespace }) =>
        wrongNamespace === undefined ? state : `${state} (${wrongNamespace})`,
      )
    }
  }

  const deletionTimestamp = '2026-01-01T00:00:00Z'
  const objects: Record<string, ObjectMeta> = {
    'shop/solid': { uid: 'solid' },
    'shop/waiting': { uid: 'waiting', deletionTimestamp, finalizers: ['foregroundDeletion'] },
    'shop/deleted': { uid: 'deleted', deletionTimestamp, finalizers: ['example.com/x'] },
    'shop/again': { uid: 'second' },
    'other/elsewhere': { uid: 'elsewhere' },
    '/node': { uid: 'node' },
  }
  for (const { title, owner, namespace = 'shop', state } of [
    { title: 'solid if it exists', owner: reference('ConfigMap', 'solid', 'solid'), state: 'solid' },
    { title: 'solid if it is cluster-scoped', owner: reference('Node', 'node', 'node'), state: 'solid' },
    {
      title: 'waiting if it is deleted in the foreground',
      owner: reference('ConfigMap', 'waiting', 'waiting'),
      state: 'waiting',
    },
    {
      title: 'solid if another finalizer holds it',
      owner: reference('ConfigMap', 'deleted', 'deleted'),
      state: 'solid',
    },
    { title: 'absent if there is none', owner: reference('ConfigMap', 'none', 'none'), state: 'absent' },
    {
      title: 'absent if an object of its name has another uid',
      owner: reference('ConfigMap', 'again', 'first'),
      state: 'absent',
    },
    {
      title: 'absent in another namespace',
      owner: reference('ConfigMap', 'elsewhere', 'elsewhere'),
      state: 'absent (other)',
    },
    { title: 'unresolvable if its kind is not served', owner: reference('Unknown', 'x', 'x'), state: 'unresolvable' },
    {
      title: 'unresolvable if it is namespaced and the dependent is not',
      owner: reference('ConfigMap', 'solid', 'solid'),
      namespace: '',
      state: 'unresolvable (shop)',
    },
    {
      title: 'unresolvable if it is namespaced, the dependent is not, and it does not exist',
      owner: reference('ConfigMap', 'none', 'none'),
      namespace: '',
      state: 'unresolvable',
    },
  ]) {
    it(`are ${title}`, async () =>
      expect(await new Cluster(objects).statesOf(dependent(namespace, [owner]))).to.deep.equal([state]))
  }

  it('are asked for each time, but searched for once, if they are absent', async () => {
    const cluster = new Cluster(objects)
    const object = dependent('shop', [reference('ConfigMap', 'none', 'none')])
    for (let i = 0; i < 3; i++) expect(await cluster.statesOf(object)).to.deep.equal(['absent'])
    expect(cluster.asked).to.equal(3)
    expect(cluster.searched).to.equal(1)
  })

  const deleted = {
    cluster: 'id',
    resource: 'things.example.dev',
    kind: 'Thing',
    namespace: 'shop',
    name: 'x',
    uid: 'u',
  }
  const thing = { apiVersion: 'example.dev/v1', kind: 'Thing', name: 'x', uid: 'u' }
  for (const { title, owner = thing, namespace = 'shop', state } of [
    { title: 'absent', state: 'absent' },
    { title: 'unresolvable from another namespace', namespace: 'other', state: 'unresolvable' },
    { title: 'unresolvable if the reference has another uid', owner: { ...thing, uid: 'v' }, state: 'unresolvable' },
    { title: 'unresolvable if the reference has another name', owner: { ...thing, name: 'y' }, state: 'unresolvable' },
    {
      title: 'unresolvable if the reference has another group',
      owner: { ...thing, apiVersion: 'example.com/v1' },
      state: 'unresolvable',
    },
    { title: 'unresolvable if the dependent has no namespace', namespace: '', state: 'unresolvable' },
  ])
    it(`are ${title} after their deletion was seen and their kind is no longer served`, async () => {
      const cluster = new Cluster(objects)
      cluster.gone.add(deleted)
      expect(await cluster.statesOf(dependent(namespace, [owner]))).to.deep.equal([state])
    })

  it('are solid although an object with the same uid was deleted', async () => {
    const cluster = new Cluster(objects)
    cluster.gone.add({ cluster: 'id', resource: 'pods', kind: 'Pod', namespace: 'shop', name: 'copy', uid: 'solid' })
    const object = dependent('shop', [reference('ConfigMap', 'solid', 'solid')])
    expect(await cluster.statesOf(object)).to.deep.equal(['solid'])
  })

  it('wait for dependents only if they have a deletionTimestamp and the finalizer', () => {
    expect(isDeletingInForeground({ finalizers: ['foregroundDeletion'] })).to.equal(false)
    expect(isDeletingInForeground({ deletionTimestamp })).to.equal(false)
    expect(isDeletingInForeground({ deletionTimestamp, finalizers: ['foregroundDeletion'] })).to.equal(true)
  })
})
