// Makes the object for a logical cluster from a running object of a member: keeps what the owner wrote, and drops what
// servers and controllers have set.
import { cloneJson, isJsonObject, type JsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import {
  adoptedAnnotation,
  isOwnAnnotation,
  isOwnLabel,
  workloadKindOfObject,
  type AdoptedObject,
} from '#crds/index.ts'
import { jobLabels, jobNameLabels } from '#syncer/transform/workload-down.ts'
import type { AdoptionRequest } from './request.ts'

/** Annotations that controllers of the member write: they tell the state of the object there. */
const controllerAnnotations = ['pv.kubernetes.io/', 'volume.kubernetes.io/', 'volume.beta.kubernetes.io/', 'endpoints.']

/** The object for the logical cluster, with the record that the adoption made it. */
export function upstreamObject(live: KubeObject, { adoption, member, namespace }: AdoptionRequest): KubeObject {
  const { metadata, status: _status, ...content } = cloneJson(live)
  const record: AdoptedObject = { member: member.name, adoption }
  const { name = '', labels = {}, annotations = {} } = metadata
  const own = workloadKindOfObject(live)?.controllerAnnotationPrefix
  const dropped = [...controllerAnnotations, ...(own === undefined ? [] : [own])]
  const kept = Object.entries(annotations).filter(
    ([key]) => !isOwnAnnotation(key) && !dropped.some((prefix) => key.startsWith(prefix)),
  )
  const ofOwner = Object.entries(labels).filter(([key]) => !isOwnLabel(key))
  const object: KubeObject = {
    ...content,
    metadata: {
      name,
      namespace,
      ...(ofOwner.length > 0 && { labels: Object.fromEntries(ofOwner) }),
      annotations: { ...Object.fromEntries(kept), [adoptedAnnotation]: JSON.stringify(record) },
    },
  }
  const { spec } = object
  changes[live.kind]?.(object, isJsonObject(spec) ? spec : {})
  return object
}

/** By kind: removes in place what the member's servers have set. */
const changes: Readonly<Record<string, (object: KubeObject, spec: JsonObject) => void>> = {
  Service(_object, spec) {
    const isHeadless = spec['clusterIP'] === 'None'
    for (const field of ['clusterIP', 'clusterIPs', 'ipFamilies']) Reflect.deleteProperty(spec, field)
    if (isHeadless) spec['clusterIP'] = 'None'
  },
  ServiceAccount(object) {
    delete object['secrets']
  },
  Job(_object, spec) {
    if (spec['manualSelector'] === true) return
    delete spec['selector']
    const { template } = spec
    const metadata = isJsonObject(template) ? template['metadata'] : undefined
    const labels = isJsonObject(metadata) ? metadata['labels'] : undefined
    if (isJsonObject(labels))
      for (const label of [...jobLabels, ...jobNameLabels]) Reflect.deleteProperty(labels, label)
  },
}
