// The parts of placement that admission reads: the members, the rules of admins, and the rules of the tenant.
import { rootClusterName, type DeepReadonly, type KubeObject } from '#apimachinery/meta/index.ts'
import type { MemberCluster, Placement } from '#crds/index.ts'
import { workloadKindOf } from '#crds/index.ts'
import { applicableRules, type ApplicableRules } from '#placement/index.ts'
import { decodeMetadata, decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AdmissionRequest } from './admission.ts'

/** The members and the Placements of admins, from memory. */
export interface Fleet {
  all(): readonly DeepReadonly<MemberCluster>[]
  adminPlacements(): readonly DeepReadonly<Placement>[]
}

export const placementsKey = 'placements.kcp.dev'

/**
 * True if a tenant creates or updates an object or a subresource, except in the logical cluster `root` of the admins.
 */
export function isTenantsWrite({ operation, context }: AdmissionRequest): boolean {
  return (
    (operation === 'CREATE' || operation === 'UPDATE') &&
    context.user.realm.kind !== 'installation' &&
    context.cluster.name !== rootClusterName
  )
}

/** True for the kinds that members run. */
export function isWorkload({ definition: { info, storageKey } }: AdmissionRequest): boolean {
  const { group, resource } = workloadKindOf(info.resource)?.gvr ?? {}
  return resource !== undefined && storageKey === (group === '' ? resource : `${resource}.${group ?? ''}`)
}

/** The namespace of the object, with its metadata only; the object itself if it is a namespace. */
export function namespaceOf(request: AdmissionRequest, object: KubeObject): DeepReadonly<KubeObject> | undefined {
  if (request.definition.storageKey === 'namespaces') return object
  const entry = request.context.objects.get('namespaces', '', request.namespace)
  return entry && { apiVersion: 'v1', kind: 'Namespace', metadata: decodeMetadata(entry.bytes) }
}

/** The rules of admins that apply to a namespace with these labels; with `withTenants`, the tenant's own rules, too. */
export function rulesFor(
  { context }: AdmissionRequest,
  fleet: Fleet,
  {
    namespaceLabels,
    withTenants = false,
  }: { readonly namespaceLabels: Readonly<Record<string, string>> | undefined; readonly withTenants?: boolean },
): ApplicableRules {
  const stored = withTenants ? context.objects.list({ resource: placementsKey }) : []
  const paid = stored.filter(({ size }) => context.work.trySpendBytes(size))
  return applicableRules(
    { ofTenant: paid.map(({ bytes }) => decodeObject(bytes) as Placement), ofAdmins: fleet.adminPlacements() },
    { clusterLabels: context.cluster.labels, namespaceLabels },
  )
}
