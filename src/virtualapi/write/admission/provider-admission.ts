// The provider whose admission acts on an object of an exported resource: webhooks and policies of the export's logical
// cluster, for exported resources alone, in consumers whose APIBinding accepts them.
import { groupResourceText, tryClusterName, type ClusterId } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { identityOf, type APIExport } from '#crds/index.ts'
import type { ClusterObjects, Entry } from '#store/watch-cache/index.ts'
import type { Authorizer } from '#virtualapi/auth/authz/index.ts'
import { boundRevision, type BoundRevision } from '#virtualapi/catalog/sharing/binding-source.ts'
import { bindingKey, exportKey } from '#virtualapi/catalog/sharing/sharing-index.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { ResourceDefinition } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { AdmissionPlugin, AdmissionRequest } from './admission.ts'

/** The logical cluster of an export, as far as it acts in a consumer. */
export interface Provider {
  readonly cluster: LogicalCluster
  readonly objects: ClusterObjects
  readonly exportName: string
  /** PLURAL.GROUP of each resource that the consumer has by the export. */
  readonly resources: readonly string[]
  /** True if the export brings the webhook configuration, or the policy, of this name. */
  brings(part: ProvidedPart, name: string): boolean
}

export type ProvidedPart = 'webhooks' | 'policies'

/** Where a write happens, as far as it decides which provider acts. */
export interface WriteOf {
  readonly definition: ResourceDefinition
  readonly objects: ClusterObjects
  readonly signal: AbortSignal
}

export interface Providers {
  /**
   * The provider whose webhooks or policies (by default: either) act on objects of the resource here; undefined: none
   * does. Costs nothing for resources that no export gives. Resolves once the provider's objects are in memory.
   */
  of(write: WriteOf, part?: ProvidedPart): Provider | Promise<Provider | undefined> | undefined
}

export interface ProvidersParts {
  readonly directory: Pick<ClusterDirectory, 'byName'>
  readonly watchCache: {
    loaded(id: ClusterId): ClusterObjects | undefined
    cluster(id: ClusterId, options: { readonly signal: AbortSignal }): Promise<ClusterObjects>
  }
}

export function createProviders({ directory, watchCache }: ProvidersParts): Providers {
  return {
    of({ definition, objects, signal }, part) {
      const bound = boundTo(objects, definition)
      const { admission } = bound ?? {}
      if (bound === undefined || admission === undefined) return undefined
      if (part === undefined ? !admission.webhooks && !admission.policies : !admission[part]) return undefined
      const name = tryClusterName(bound.clusterName)
      const cluster = name === undefined ? undefined : directory.byName(name)
      // In its own logical cluster the provider's admission acts anyway.
      if (cluster === undefined || cluster.id === objects.cluster) return undefined
      const loaded = watchCache.loaded(cluster.id)
      if (loaded !== undefined) return providerIn(cluster, loaded, bound)
      return watchCache.cluster(cluster.id, { signal }).then((all) => providerIn(cluster, all, bound))
    },
  }
}

const bindings = new WeakMap<ClusterObjects, { readonly changes: number; readonly all: readonly BoundRevision[] }>()

/** The binding that gives a resource to a logical cluster; undefined if no binding does. */
function boundTo(objects: ClusterObjects, { isShared, info }: ResourceDefinition): BoundRevision | undefined {
  if (isShared !== true) return undefined
  const changes = objects.changes(bindingKey)
  let known = bindings.get(objects)
  if (known?.changes !== changes) {
    const all = objects.list({ resource: bindingKey }).flatMap((entry) => boundRevision(entry) ?? [])
    bindings.set(objects, (known = { changes, all }))
  }
  const resource = groupResourceText(info)
  return known.all.find(({ resources }) => resources.includes(resource))
}

function providerIn(cluster: LogicalCluster, objects: ClusterObjects, bound: BoundRevision): Provider | undefined {
  const found = exportWith(objects, bound.exportUid)
  if (found === undefined) return undefined
  const { admission = {} } = (decodeObject(found.bytes) as APIExport).spec ?? {}
  const { resources } = bound
  const brings = (part: ProvidedPart, name: string): boolean => admission[part]?.includes(name) ?? true
  return { cluster, objects, exportName: found.key.name, resources, brings }
}

function exportWith(objects: ClusterObjects, identity: string): Entry | undefined {
  return objects.list({ resource: exportKey }).find((entry) => identityIn(entry) === identity)
}

const identities = new WeakMap<Entry, string>()

function identityIn(entry: Entry): string {
  let identity = identities.get(entry)
  if (identity === undefined) identities.set(entry, (identity = identityOf(decodeObject(entry.bytes) as APIExport)))
  return identity
}

/**
 * Refuses writes of exported objects while the consumer has not accepted admission that the export requires. Deletions,
 * writes of objects that are being deleted, and writes of the provider go on.
 */
export const requiredAdmission: AdmissionPlugin = {
  name: 'RequiredAdmission',
  validate({ definition, name, operation, context }, object, old) {
    const { admission } = boundTo(context.objects, definition) ?? {}
    if (admission?.isRequired !== true || (admission.webhooks && admission.policies)) return
    if (object === undefined || operation === 'DELETE' || old?.metadata.deletionTimestamp !== undefined) return
    if (context.rule !== undefined || context.user.realm.kind === 'installation') return
    const why =
      'the export requires that this logical cluster accepts admission of the provider: set webhooks and policies in spec.admission of the APIBinding to Accepted'
    throw forbidden(definition.info, name, why)
  },
}

/**
 * The authorizer for expressions of a provider: it tells of no rights in the consumer but those on exported resources.
 */
export function boundedAuthorizer(
  authorizer: Pick<Authorizer, 'authorize'>,
  { resources }: Pick<Provider, 'resources'>,
): Pick<Authorizer, 'authorize'> {
  const refused = { allowed: false, reason: 'the admission of an export learns rights on exported resources alone' }
  return {
    authorize(user, attributes, where) {
      const { resource } = attributes
      const isExported = resource !== undefined && resources.includes(groupResourceText(resource))
      return isExported ? authorizer.authorize(user, attributes, where) : refused
    },
  }
}

/** The provider of the resource of a request; see `Providers`. */
export function providerOf(
  providers: Providers | undefined,
  { definition, context, signal }: AdmissionRequest,
  part: ProvidedPart,
): ReturnType<Providers['of']> {
  if (definition.isShared !== true) return undefined
  return providers?.of({ definition, objects: context.objects, signal }, part)
}
