// Tenants cannot create objects in a logical cluster that is being deleted, because the objects would be lost a moment
// later.
import { forbidden } from '#apimachinery/status/index.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'

export const logicalClusterLifecycle: AdmissionPlugin = {
  name: 'LogicalClusterLifecycle',
  mutate({ operation, definition, name, context }) {
    if (operation !== 'CREATE' || !context.cluster.deleting || context.user.realm.kind === 'installation') return
    throw forbidden(
      definition.info,
      name,
      `logical cluster "${context.cluster.name}" is being deleted and takes no new objects`,
    )
  },
}
