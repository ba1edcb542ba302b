// The view of placement that admission has: the members, the rules of admins, and the rules of the tenant.
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

/** True for a write by a tenant, of an object or by a subresource, and not in the logical cluster of the admins. */
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

/** The namespace of the object, or the object if it is a namespace itself. */
export function namespaceOf(request: AdmissionRequest, object: KubeObject): DeepReadonly<KubeObject> | undefined {
  if (request.definition.storageKey === 'namespaces') return object
  const entry = request.context.objects.get('namespaces', '', request.namespace)
  return entry && { apiVersion: 'v1', kind: 'Namespace', metadata: decodeMetadata(entry.bytes) }
}

/** The rules of admins that hold in a namespace with these labels; with `withTenants`, those of the tenant too. */
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
