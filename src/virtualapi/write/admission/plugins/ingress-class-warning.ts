// Warns the writer of an Ingress whose class the logical cluster does not have, if the logical cluster shows
// IngressClasses of members.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { projectedAnnotation } from '#crds/index.ts'
import { decodeMetadata } from '#virtualapi/kinds/resources/object-bytes.ts'
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'

const [ingresses, classes] = ['ingresses.networking.k8s.io', 'ingressclasses.networking.k8s.io']

/**
 * Adds a warning when the class name is written or changed. Adds none if the logical cluster has the class, or shows no
 * class of a member.
 */
export const ingressClassWarning: AdmissionPlugin = {
  name: 'IngressClassWarning',
  validate({ definition, subresource, context }, object, old) {
    if (definition.storageKey !== ingresses || subresource !== '' || object === undefined) return
    if (context.user.realm.kind === 'installation') return
    const name = classOf(object)
    if (name === undefined || (old !== undefined && name === classOf(old))) return
    const { objects } = context
    if (objects.get(classes, '', name) !== undefined) return
    const shown = objects
      .list({ resource: classes })
      .map(({ bytes }) => decodeMetadata(bytes))
      .filter(({ annotations }) => annotations?.[projectedAnnotation] !== undefined)
      .map((metadata) => metadata.name ?? '')
      .sort()
    if (shown.length === 0) return
    const known = shown.slice(0, 10).join(', ')
    context.warnings.push(
      `spec.ingressClassName: no member cluster has the IngressClass "${name}"; there are: ${known}`,
    )
  },
}

function classOf(ingress: KubeObject): string | undefined {
  const { ingressClassName: name } = (ingress['spec'] ?? {}) as { ingressClassName?: string }
  return name === '' ? undefined : name
}
