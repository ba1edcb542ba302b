// Writes through the view of an export: only objects that the view shows, before and after the write.
import type { JsonObject, KubeObject } from '#apimachinery/meta/index.ts'
import { forbidden } from '#apimachinery/status/index.ts'
import type { ViewedObject } from '#virtualapi/request/request-view.ts'
import type { AdmissionPlugin } from './admission.ts'

export const viewWrites: AdmissionPlugin = {
  name: 'ViewWrites',
  mutate({ context: { rule }, operation }, { metadata }) {
    if (rule === undefined || operation !== 'CREATE' || Object.keys(rule.labels).length === 0) return
    metadata.labels = { ...metadata.labels, ...rule.labels }
  },
  validate({ context: { rule }, definition: { info }, name }, object, old) {
    if (rule?.matches === undefined) return
    for (const state of [old, object])
      if (state !== undefined && !rule.matches(viewedState(state)))
        throw forbidden(info, name, 'the permission claim that the consumer has accepted does not cover this object')
  },
}

function viewedState(object: KubeObject): ViewedObject {
  const { namespace = '', name = '', labels } = object.metadata
  return { namespace, name, labels, object: () => object as unknown as JsonObject }
}
