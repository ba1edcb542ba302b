// Refuses Services of type ExternalName that name a host in the zone of the nameservers in members. This zone has the
// Services of all logical clusters.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import { isInTenantZone, tenantZone } from '#crds/index.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'
import { mayWriteOwnFields } from './own-fields.ts'

/** Refuses such a name with 403 when it is written. A stored name stays, but resolves to nothing in members. */
export const externalNames: AdmissionPlugin = {
  name: 'ExternalNames',
  validate({ definition, context, name }, object, old) {
    if (definition.storageKey !== 'services' || object === undefined) return
    if (mayWriteOwnFields(context)) return
    const target = externalNameOf(object)
    if (target === undefined || !isInTenantZone(target) || target === (old && externalNameOf(old))) return
    const why = `spec.externalName "${target}" is not allowed: names that end with "${tenantZone}" are for the nameservers of member clusters; name a Service of this logical cluster as SERVICE.NAMESPACE.svc.cluster.local`
    throw forbidden(definition.info, name || (object.metadata.generateName ?? ''), why)
  },
}

function externalNameOf({ spec }: KubeObject): string | undefined {
  const { externalName } = (spec ?? {}) as { externalName?: unknown }
  return typeof externalName === 'string' ? externalName : undefined
}
