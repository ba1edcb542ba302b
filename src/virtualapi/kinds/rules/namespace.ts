// Namespaces: spec.finalizers keep them until their controller has deleted the content.
import type { V1NamespaceSpec, V1NamespaceStatus } from '@kubernetes/client-node'
import { fieldInvalid, qualifiedNameErrors } from '#apimachinery/field/index.ts'
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'

const kubernetesFinalizer = 'kubernetes'

interface Namespace extends KubeObject {
  spec: Data<V1NamespaceSpec>
  status: Data<V1NamespaceStatus>
}

export const namespaceRules: KindRules = {
  deletedByController: true,
  prepareForCreate(object) {
    const namespace = object as Namespace
    const finalizers = namespace.spec.finalizers ?? []
    if (!finalizers.includes(kubernetesFinalizer)) namespace.spec.finalizers = [...finalizers, kubernetesFinalizer]
    namespace.status = { phase: 'Active' }
    nameLabel(namespace)
  },
  prepareForUpdate(object, old, _context, subresource) {
    const namespace = object as Namespace
    const { spec, status } = old as Namespace
    if (subresource !== 'finalize') namespace.spec = cloneJson(spec)
    if (subresource === 'finalize') namespace.status = cloneJson(status)
    if (namespace.metadata.deletionTimestamp !== undefined) namespace.status.phase = 'Terminating'
    nameLabel(namespace)
  },
  validate(object) {
    const { spec } = object as Namespace
    return (spec.finalizers ?? []).flatMap((finalizer) => finalizerCauses(finalizer, 'spec.finalizers'))
  },
  validateSubresource(object, _old, subresource) {
    const { spec } = object as Namespace
    if (subresource !== 'finalize') return []
    return (spec.finalizers ?? []).flatMap((finalizer, i) => finalizerCauses(finalizer, `spec.finalizers[${i}]`))
  },
}

function nameLabel({ metadata }: Namespace): void {
  metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name ?? '' }
}

function finalizerCauses(finalizer: string, path: string) {
  const causes = qualifiedNameErrors(finalizer).map((text) => fieldInvalid(path, finalizer, text))
  if (!finalizer.includes('/') && finalizer !== kubernetesFinalizer)
    causes.push(fieldInvalid(path, finalizer, 'name is neither a standard finalizer name nor is it fully qualified'))
  return causes
}
