// The form in which admission of a provider gets objects of a consumer: with the annotation that names the logical
// cluster, as in the kcp project, and with no more of the namespace than its name.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { ReviewedForm } from './reviewed-form.ts'

const clusterAnnotation = 'kcp.io/cluster'

/** The form with the name of the consumer. The annotation is never stored. */
export function consumerForm(form: ReviewedForm, consumer: string): ReviewedForm {
  return {
    ...form,
    async show(object) {
      return annotated(await form.show(object), consumer)
    },
    async take(shown, object, options) {
      const own = object.metadata.annotations?.[clusterAnnotation]
      const { [clusterAnnotation]: _told, ...rest } = shown.metadata.annotations ?? {}
      const annotations = own === undefined ? rest : { ...rest, [clusterAnnotation]: own }
      const { annotations: _all, ...others } = shown.metadata
      const metadata = Object.keys(annotations).length === 0 ? others : { ...others, annotations }
      return form.take({ ...shown, metadata }, object, options)
    },
  }
}

function annotated(object: KubeObject, consumer: string): KubeObject {
  const { annotations } = object.metadata
  return { ...object, metadata: { ...object.metadata, annotations: { ...annotations, [clusterAnnotation]: consumer } } }
}

/** The labels of a namespace of a consumer for selectors of the provider: only its name, which objects have anyway. */
export function labelsForProvider(namespace: string): Readonly<Record<string, string>> {
  return { 'kubernetes.io/metadata.name': namespace }
}

/** The namespace of a consumer for expressions of the provider. */
export function namespaceForProvider(name: string): KubeObject {
  const metadata = { name, labels: { ...labelsForProvider(name) } }
  return { apiVersion: 'v1', kind: 'Namespace', metadata }
}
