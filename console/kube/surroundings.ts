// The objects that an explanation needs besides its own: read once for each explanation, each kind with a bound.
import { explainCluster, explainObject, type Finding, type SeenObject } from '#explain/index.ts'
import { workloadKinds } from '#crds/index.ts'
import { resourcesOf } from './discovery.ts'
import { isRecord, stringOf, type AnyObject } from './objects.ts'
import { clusterPath, listPath, type ObjectRef, type ResourceRef } from './paths.ts'
import { requestJson } from './request.ts'

/** No explanation looks at more objects of a kind. */
const maxObjects = 2000

export interface Asked {
  readonly cluster: string
  /** Path of the API with LogicalClusters and MemberClusters, if the session may read it. */
  readonly home: string | undefined
  readonly signal: AbortSignal
}

const core = (resource: string): ResourceRef => ({ group: '', version: 'v1', resource })
const slices = { group: 'discovery.k8s.io', version: 'v1', resource: 'endpointslices' }

/** "Why is nothing happening?" for one object. */
export async function findingsOf(target: ObjectRef, object: AnyObject, asked: Asked): Promise<Finding[]> {
  const { cluster, namespace } = target
  const within = (resource: ResourceRef): Promise<SeenObject[] | undefined> =>
    namespace === '' ? Promise.resolve(undefined) : listed(listPath(cluster, resource, namespace), asked)
  const [logicalCluster, members, pods, events, endpointSlices, namespaceObject] = await Promise.all([
    ownCluster(asked),
    membersOf(asked),
    within(core('pods')),
    within(core('events')),
    target.resource === 'services' ? within(slices) : undefined,
    namespace === '' ? undefined : one(`${clusterPath(cluster)}/api/v1/namespaces/${namespace}`, asked),
  ])
  return explainObject(object as unknown as SeenObject, {
    cluster,
    nowMs: Date.now(),
    ...(logicalCluster && { logicalCluster }),
    ...(members && { members }),
    ...(namespaceObject && { namespace: namespaceObject }),
    ...(pods && { pods: podsOf(object, pods) }),
    ...(events && { events }),
    ...(endpointSlices && { endpointSlices }),
  })
}

/** The pods that the object selects, or owns. A pod is not about itself. */
function podsOf(object: AnyObject, pods: readonly SeenObject[]): SeenObject[] {
  const selector = object.spec?.['selector']
  const labels = isRecord(selector) && isRecord(selector['matchLabels']) ? selector['matchLabels'] : undefined
  const { uid } = object.metadata
  return pods.filter(({ metadata }) => {
    if (metadata.uid === uid) return false
    if (metadata.ownerReferences?.some((owner) => owner.uid === uid) === true) return true
    return labels !== undefined && Object.entries(labels).every(([key, value]) => metadata.labels?.[key] === value)
  })
}

/** Kinds besides workloads that `explainCluster` looks at. */
const lookedAt: readonly string[] = ['services', 'persistentvolumeclaims', 'ingresses', 'placements', 'serviceexports']

/** "Why is nothing happening?" for a whole logical cluster. */
export async function findingsIn(asked: Asked): Promise<Finding[]> {
  const { cluster } = asked
  const kinds = workloadKinds.map(({ gvr }): string => gvr.resource).filter((resource) => resource !== 'pods')
  const resources = (await resourcesOf(cluster)).filter(({ resource }) => [...kinds, ...lookedAt].includes(resource))
  const all = (resource: ResourceRef): Promise<SeenObject[] | undefined> => listed(listPath(cluster, resource), asked)
  const [logicalCluster, members, namespaces = [], pods, events, endpointSlices, ...objects] = await Promise.all([
    ownCluster(asked),
    membersOf(asked),
    all(core('namespaces')),
    all(core('pods')),
    all(core('events')),
    all(slices),
    ...resources.map(async (resource) => (await all(resource))?.map((object) => ({ ...object, kind: resource.kind }))),
  ])
  return explainCluster({
    cluster,
    nowMs: Date.now(),
    namespaces,
    objects: objects.flatMap((list) => list ?? []),
    ...(logicalCluster && { logicalCluster }),
    ...(members && { members }),
    ...(pods && { pods }),
    ...(events && { events }),
    ...(endpointSlices && { endpointSlices }),
  })
}

function ownCluster({ cluster, home, signal }: Asked): Promise<SeenObject | undefined> {
  if (home === undefined || cluster === 'root') return Promise.resolve(undefined)
  const path = `${home}/apis/kcp.dev/v1alpha1/logicalclusters/${encodeURIComponent(cluster)}`
  return one(path, { signal })
}

/** MemberClusters, or the Members that the logical cluster may use, whose kind is served while there are members. */
function membersOf({ cluster, home, signal }: Asked): Promise<SeenObject[] | undefined> {
  if (home !== undefined) return listed(`${home}/apis/kcp.dev/v1alpha1/memberclusters`, { signal })
  return listed(listPath(cluster, { group: 'kcp.dev', version: 'v1alpha1', resource: 'members' }), { signal })
}

function one(path: string, { signal }: Pick<Asked, 'signal'>): Promise<SeenObject | undefined> {
  return requestJson<SeenObject>(path, { signal }).catch(() => undefined)
}

/** The objects with their kind; undefined if the session may not list them, and nothing is said about them. */
async function listed(path: string, { signal }: Pick<Asked, 'signal'>): Promise<SeenObject[] | undefined> {
  const query = { limit: String(maxObjects) }
  const list = await requestJson<{ kind?: unknown; items?: readonly SeenObject[] }>(path, { query, signal }).catch(
    () => undefined,
  )
  const kind = stringOf(list?.kind).replace(/List$/, '')
  return list?.items?.map((item) => ({ ...item, kind }))
}
