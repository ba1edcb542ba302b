// Annotations that kcp sets on tenants' objects. Tenants can read them; only our own processes can write them.
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import { heldAnnotation, isOwnAnnotation } from '../../../crds/index.ts'
import type { AdmissionPlugin } from '../admission.ts'

/** Reverts a tenant's changes of these annotations with a warning. An update without them keeps them. */
export const kcpAnnotations: AdmissionPlugin = {
  name: 'KcpAnnotations',
  mutate({ context, operation }, object, old) {
    if (context.user.realm.kind === 'installation') return
    const annotations = { ...object.metadata.annotations }
    const previous = ownAnnotations(old)
    for (const [name, value] of Object.entries(annotations)) {
      if (!isOwn(name, object) || previous[name] === value) continue
      context.warnings.push(
        operation === 'CREATE'
          ? `metadata.annotations: "${name}" is set by kcp and was ignored`
          : `metadata.annotations: "${name}" is set by kcp and was left unchanged`,
      )
      Reflect.deleteProperty(annotations, name)
    }
    Object.assign(annotations, previous)
    if (Object.keys(annotations).length > 0) object.metadata.annotations = annotations
    else delete object.metadata.annotations
  },
}

function ownAnnotations(object: KubeObject | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(object?.metadata.annotations ?? {}).filter(([name]) => object !== undefined && isOwn(name, object)),
  )
}

/**
 * A tenant may run the Deployment controller of Kubernetes. It copies annotations of a Deployment to its ReplicaSets, and makes
 * no progress while they differ, so a ReplicaSet may carry the annotation in which our scheduler explains itself.
 */
function isOwn(name: string, { kind }: KubeObject): boolean {
  return isOwnAnnotation(name) && !(name === heldAnnotation && kind === 'ReplicaSet')
}
