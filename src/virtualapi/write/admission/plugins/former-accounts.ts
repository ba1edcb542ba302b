// Records the former ServiceAccounts of a placed workload, so that its old pods keep access during a rollout.
import { formerAccountsAnnotation, formerAccountsText, isWorkloadResource, placedOnAnnotation } from '#crds/index.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'

/** Writes the annotation when an update of a placed workload changes the ServiceAccount of its template. */
export const formerAccounts: AdmissionPlugin = {
  name: 'FormerServiceAccounts',
  mutate({ operation, definition, subresource, context }, object, old) {
    if (operation !== 'UPDATE' || subresource !== '' || old === undefined) return
    if (!isWorkloadResource(definition.info.resource) || old.metadata.annotations?.[placedOnAnnotation] === undefined)
      return
    const text = formerAccountsText(object, old, context.now)
    const { [formerAccountsAnnotation]: _, ...others } = object.metadata.annotations ?? {}
    const annotations = text === undefined ? others : { ...others, [formerAccountsAnnotation]: text }
    if (Object.keys(annotations).length > 0) object.metadata.annotations = annotations
    else delete object.metadata.annotations
  },
}
