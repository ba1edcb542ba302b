// Pods that name no ServiceAccount run as `default`.
import type { AdmissionPlugin } from '../admission.ts'

/** Sets serviceAccountName of new pods. */
export const serviceAccountDefault: AdmissionPlugin = {
  name: 'ServiceAccount',
  mutate({ operation, definition, subresource }, object) {
    const { group, resource } = definition.info
    if (operation !== 'CREATE' || subresource !== '' || group !== '' || resource !== 'pods') return
    const spec = object['spec'] as { serviceAccountName?: string; serviceAccount?: string } | undefined
    if (spec === undefined || spec.serviceAccountName) return
    spec.serviceAccountName = 'default'
    spec.serviceAccount = 'default'
  },
}
