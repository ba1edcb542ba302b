// The work of controllers within a cluster: namespace deletion, garbage collection, ServiceAccounts and their tokens,
// aggregation.
import { isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import type { ApiResponse } from '#test/parity/support/comparable-answer.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { valueAt, type Manifest, type Session } from '#test/parity/support/session.ts'

const gone = ({ status }: ApiResponse): boolean => status === 404
const there = ({ status }: ApiResponse): boolean => status === 200
const map = (name: string, namespace: string, rest: JsonObject = {}): Manifest => ({
  ...{ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace, ...rest } },
})
const space = (name: string): Manifest => ({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } })
const condition = (response: ApiResponse, type: string): JsonObject | undefined => {
  const list = valueAt(response.body, 'status.conditions')
  return Array.isArray(list) ? list.filter(isJsonObject).find((one) => one['type'] === type) : undefined
}
const quiet = { quiet: true }

/** Creates an object and returns the owner reference to it. */
async function owner(session: Session, manifest: Manifest): Promise<JsonObject> {
  const { body } = await session.create(manifest, quiet)
  const { apiVersion, kind, metadata } = manifest
  return { apiVersion, kind, name: metadata['name'] ?? null, uid: valueAt(body, 'metadata.uid') ?? null }
}

const maps = (namespace: string, name: string): string => `/api/v1/namespaces/${namespace}/configmaps/${name}`

export const loopRows: readonly Row[] = [
  row('a new namespace gets a ServiceAccount and a CA', async (session) => {
    const name = 'born-$ID'
    await session.create(space(name))
    await session.until(`/api/v1/namespaces/${name}/serviceaccounts/default`, there)
    // The CA and the description of the ConfigMap differ between servers.
    await session.until(maps(name, 'kube-root-ca.crt'), there, { without: ['data', 'metadata.annotations'] })
    await session.delete(`/api/v1/namespaces/${name}/serviceaccounts/default`, undefined, quiet)
    await session.until(`/api/v1/namespaces/${name}/serviceaccounts/default`, there)
    await session.delete(maps(name, 'kube-root-ca.crt'), undefined, quiet)
    await session.untilQuiet(maps(name, 'kube-root-ca.crt'), there)
    await session.patch(maps(name, 'kube-root-ca.crt'), { data: { 'ca.crt': 'mine', other: 'x' } }, 'merge', quiet)
    await session.untilQuiet(maps(name, 'kube-root-ca.crt'), ({ body }) => valueAt(body, 'data.other') === undefined)
    await session.delete(`/api/v1/namespaces/${name}`, undefined, quiet)
    await session.untilQuiet(`/api/v1/namespaces/${name}`, gone)
  }),
  row('a namespace is deleted after its content', async (session) => {
    const name = 'end-$ID'
    await session.create(space(name), quiet)
    await session.create(map('free', name), quiet)
    await session.create(map('held', name, { finalizers: ['example.com/hold'] }), quiet)
    await session.delete(`/api/v1/namespaces/${name}`)
    await session.untilQuiet(maps(name, 'free'), gone)
    await session.until(
      `/api/v1/namespaces/${name}`,
      (response) =>
        condition(response, 'NamespaceFinalizersRemaining')?.['status'] === 'True' &&
        condition(response, 'NamespaceContentRemaining')?.['status'] === 'True',
    )
    await session.create(map('late', name))
    await session.patch(maps(name, 'held'), { metadata: { labels: { still: 'here' } } }, 'merge', {
      without: ['metadata.deletionTimestamp'],
    })
    await session.patch(`/api/v1/namespaces/${name}`, { metadata: { labels: { still: 'here' } } }, 'merge', {
      without: ['status.conditions'],
    })
    await session.delete(`/api/v1/namespaces/${name}`, undefined, { without: ['status.conditions'] })
    await session.patch(maps(name, 'held'), { metadata: { finalizers: null } }, 'merge', quiet)
    await session.until(`/api/v1/namespaces/${name}`, gone)
    await session.create(space(name), quiet)
    await session.untilQuiet(`/api/v1/namespaces/${name}/serviceaccounts/default`, there)
    await session.delete(`/api/v1/namespaces/${name}`, undefined, quiet)
  }),
  row('a namespace with its own finalizer', async (session) => {
    const name = 'own-$ID'
    const path = `/api/v1/namespaces/${name}`
    await session.create({ ...space(name), spec: { finalizers: ['example.com/mine', 'kubernetes'] } })
    await session.delete(path, undefined, quiet)
    await session.untilQuiet(
      path,
      ({ body }) => JSON.stringify(valueAt(body, 'spec.finalizers')) === '["example.com/mine"]',
    )
    await session.change(path, (one) => Object.assign(one, { spec: { finalizers: [] } }), {
      subresource: 'finalize',
      without: ['status.conditions', 'metadata.managedFields'],
    })
    await session.until(path, gone)
  }),
  row('system namespaces cannot be deleted', async (session) => {
    for (const name of ['default', 'kube-system', 'kube-public', 'kube-node-lease'])
      await session.delete(`/api/v1/namespaces/${name}?dryRun=All`)
  }),
  row('garbage: in the background', async (session) => {
    const one = await owner(session, map('bg-owner', '$NS'))
    const two = await owner(session, map('bg-other', '$NS'))
    await session.create(map('bg-child', '$NS', { ownerReferences: [one] }), quiet)
    await session.create(map('bg-both', '$NS', { ownerReferences: [one, two] }), quiet)
    await session.delete(maps('$NS', 'bg-owner'))
    await session.until(maps('$NS', 'bg-child'), gone)
    await session.until(maps('$NS', 'bg-both'), ({ body }) => valueAt(body, 'metadata.ownerReferences.1') === undefined)
    await session.delete(maps('$NS', 'bg-other'), undefined, quiet)
    await session.until(maps('$NS', 'bg-both'), gone)
  }),
  row('garbage: in the foreground', async (session) => {
    const one = await owner(session, map('fg-owner', '$NS'))
    const held = { finalizers: ['example.com/hold'] }
    await session.create(
      map('fg-block', '$NS', { ...held, ownerReferences: [{ ...one, blockOwnerDeletion: true }] }),
      quiet,
    )
    await session.create(map('fg-let', '$NS', { ...held, ownerReferences: [one] }), quiet)
    await session.delete(maps('$NS', 'fg-owner'), { propagationPolicy: 'Foreground' })
    await session.until(
      maps('$NS', 'fg-block'),
      ({ body }) => valueAt(body, 'metadata.deletionTimestamp') !== undefined,
    )
    await session.until(maps('$NS', 'fg-owner'), there)
    await session.patch(maps('$NS', 'fg-block'), { metadata: { finalizers: null } }, 'merge', quiet)
    await session.until(maps('$NS', 'fg-owner'), gone)
    await session.untilQuiet(
      maps('$NS', 'fg-let'),
      ({ body }) => valueAt(body, 'metadata.deletionTimestamp') !== undefined,
    )
    await session.patch(maps('$NS', 'fg-let'), { metadata: { finalizers: null } }, 'merge', quiet)
    await session.until(maps('$NS', 'fg-let'), gone)
  }),
  row('garbage: orphans', async (session) => {
    const one = await owner(session, map('or-owner', '$NS'))
    await session.create(map('or-child', '$NS', { ownerReferences: [{ ...one, controller: true }] }), quiet)
    await session.delete(maps('$NS', 'or-owner'), { propagationPolicy: 'Orphan' })
    await session.until(maps('$NS', 'or-owner'), gone)
    await session.until(maps('$NS', 'or-child'), ({ body }) => valueAt(body, 'metadata.ownerReferences') === undefined)
  }),
  row('garbage: owners that do not exist or are in another namespace', async (session) => {
    await session.create(space('far-$ID'), quiet)
    const far = await owner(session, map('far-owner', 'far-$ID'))
    const wide = await owner(session, {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      metadata: { name: 'wide-$ID' },
    })
    const absent = { apiVersion: 'v1', kind: 'ConfigMap', name: 'absent', uid: '11111111-2222-3333-4444-555555555555' }
    await session.create(map('of-absent', '$NS', { ownerReferences: [absent] }), quiet)
    await session.create(map('of-far', '$NS', { ownerReferences: [far] }), quiet)
    await session.create(map('of-wide', '$NS', { ownerReferences: [wide] }), quiet)
    await session.until(maps('$NS', 'of-absent'), gone)
    await session.until(maps('$NS', 'of-far'), gone)
    await session.get(maps('$NS', 'of-wide'))
    await session.delete('/apis/rbac.authorization.k8s.io/v1/clusterroles/wide-$ID', undefined, quiet)
    await session.until(maps('$NS', 'of-wide'), gone)
    await session.delete('/api/v1/namespaces/far-$ID', undefined, quiet)
  }),
  row('garbage: a cluster-scoped object with an owner in a namespace stays, and an Event tells', async (session) => {
    const one = await owner(session, map('up-owner', '$NS'))
    await session.create(space('up-$ID'), quiet)
    await session.patch('/api/v1/namespaces/up-$ID', { metadata: { ownerReferences: [one] } }, 'merge', quiet)
    const events = `/api/v1/namespaces/default/events?fieldSelector=involvedObject.name%3Dup-$ID`
    const told = ({ body }: ApiResponse): boolean => valueAt(body, 'items.0.reason') === 'OwnerRefInvalidNamespace'
    await session.untilQuiet(events, told)
    const { body } = await session.get(events, quiet)
    for (const field of ['type', 'message', 'involvedObject.kind', 'involvedObject.namespace', 'metadata.namespace'])
      session.note(field, valueAt(body, `items.0.${field}`) ?? null)
    await session.delete(maps('$NS', 'up-owner'), undefined, quiet)
    // A dependent that goes shows that the owner's deletion was handled.
    const two = await owner(session, map('up-second', '$NS'))
    await session.create(map('up-sign', '$NS', { ownerReferences: [two] }), quiet)
    await session.delete(maps('$NS', 'up-second'), undefined, quiet)
    await session.untilQuiet(maps('$NS', 'up-sign'), gone)
    await session.get('/api/v1/namespaces/up-$ID')
    await session.delete('/api/v1/namespaces/up-$ID', undefined, quiet)
  }),
  row('ClusterRoles are aggregated, and again when a part changes', async (session) => {
    const role = (name: string, rest: JsonObject): Manifest => ({
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'ClusterRole',
      ...rest,
      metadata: { name: `${name}-$ID`, ...(isJsonObject(rest['metadata']) ? rest['metadata'] : {}) },
    })
    const labels = { parts: 'of-$ID' }
    const path = (name: string): string => `/apis/rbac.authorization.k8s.io/v1/clusterroles/${name}-$ID`
    const rules = (...resources: string[]): JsonValue => [{ apiGroups: [''], resources, verbs: ['get'] }]
    const count =
      (n: number) =>
      ({ body }: ApiResponse): boolean => {
        const list = valueAt(body, 'rules')
        return (Array.isArray(list) ? list.length : 0) === n
      }
    await session.create(role('part-a', { metadata: { labels }, rules: rules('pods') }), quiet)
    await session.create(role('part-b', { metadata: { labels }, rules: rules('secrets') }), quiet)
    await session.create(
      role('whole', { aggregationRule: { clusterRoleSelectors: [{ matchLabels: labels }] }, rules: rules('mine') }),
    )
    await session.until(path('whole'), count(2))
    await session.patch(path('part-b'), { rules: rules('pods') }, 'merge', quiet)
    await session.until(path('whole'), count(1))
    await session.delete(path('part-a'), undefined, quiet)
    await session.delete(path('part-b'), undefined, quiet)
    await session.until(path('whole'), count(0))
    for (const name of ['whole']) await session.delete(path(name), undefined, quiet)
  }),
  row('token Secrets of the old kind', async (session) => {
    await session.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'old' } }, quiet)
    const secret = (name: string, account: string): Manifest => ({
      apiVersion: 'v1',
      kind: 'Secret',
      type: 'kubernetes.io/service-account-token',
      metadata: { name, annotations: { 'kubernetes.io/service-account.name': account } },
    })
    const path = (name: string): string => `/api/v1/namespaces/$NS/secrets/${name}`
    await session.create(secret('old-token', 'old'), quiet)
    await session.until(path('old-token'), ({ body }) => typeof valueAt(body, 'data.token') === 'string', {
      without: ['data'],
    })
    await session.create(secret('nobodys', 'nobody'), quiet)
    await session.until(path('nobodys'), gone)
    await session.delete('/api/v1/namespaces/$NS/serviceaccounts/old', undefined, quiet)
    await session.until(path('old-token'), gone)
  }),
  row('volumes and claims are protected while they are used', async (session) => {
    const claim: Manifest = {
      apiVersion: 'v1',
      kind: 'PersistentVolumeClaim',
      metadata: { name: 'used' },
      spec: {
        accessModes: ['ReadWriteOnce'],
        resources: { requests: { storage: '1Gi' } },
        storageClassName: 'none-$ID',
      },
    }
    const pod: Manifest = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'user' },
      spec: {
        containers: [{ name: 'a', image: 'b' }],
        nodeName: 'node-$ID',
        automountServiceAccountToken: false,
        volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'used' } }],
        terminationGracePeriodSeconds: 0,
      },
    }
    const at = '/api/v1/namespaces/$NS/persistentvolumeclaims/used'
    await session.create(claim, quiet)
    await session.create(pod, quiet)
    await session.delete(at, undefined, { without: ['status', 'metadata.annotations'] })
    await session.get(at, { without: ['status', 'metadata.annotations'] })
    await session.delete('/api/v1/namespaces/$NS/pods/user', { gracePeriodSeconds: 0 }, quiet)
    await session.until(at, gone)
  }),
]
