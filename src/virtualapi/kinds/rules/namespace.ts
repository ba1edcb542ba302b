// Namespaces: spec.finalizers keep them until their controller has deleted the content.
import type { V1NamespaceSpec, V1NamespaceStatus } from '@kubernetes/client-node'
import { cloneJson, type KubeObject } from '#apimachinery/meta/index.ts'
import type { KindRules } from './kind-rules.ts'
import { qualifiedName } from '#virtualapi/kinds/validation/basic-rules.ts'
import { all, causesOf, each, must, validating } from '#virtualapi/kinds/validation/vocabulary.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'

const kubernetesFinalizer = 'kubernetes'

interface Namespace extends KubeObject {
  spec: Data<V1NamespaceSpec>
  status: Data<V1NamespaceStatus>
}

const finalizer = all<string>(
  qualifiedName,
  must(
    (name) => name.includes('/') || name === kubernetesFinalizer,
    'name is neither a standard finalizer name nor is it fully qualified',
  ),
)
const finalizers = each(finalizer)

export const namespaceRules: KindRules = {
  deletedByController: true,
  prepareForCreate(object) {
    const namespace = object as Namespace
    const given = namespace.spec.finalizers ?? []
    if (!given.includes(kubernetesFinalizer)) namespace.spec.finalizers = [...given, kubernetesFinalizer]
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
  // As upstream, whose path has no index here.
  validate: validating<Namespace>(({ spec }, report) => {
    for (const one of spec.finalizers ?? []) report.at('spec.finalizers', finalizer, one)
  }),
  validateSubresource: (object, _old, subresource) =>
    subresource === 'finalize' ? causesOf(finalizers, 'spec.finalizers', (object as Namespace).spec.finalizers) : [],
}

function nameLabel({ metadata }: Namespace): void {
  metadata.labels = { ...metadata.labels, 'kubernetes.io/metadata.name': metadata.name ?? '' }
}
