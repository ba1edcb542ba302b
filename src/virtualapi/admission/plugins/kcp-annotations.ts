// Annotations in which the installation tells tenants what it decided. Tenants read them; only our own processes write.
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import { heldAnnotation, isOwnAnnotation } from '../../../crds/index.ts'
import type { AdmissionPlugin } from '../admission.ts'

/** Puts back what a tenant changed of them, with a warning; leaving them out of an update means unchanged. */
export const kcpAnnotations: AdmissionPlugin = {
  name: 'KcpAnnotations',
  mutate({ context, operation }, object, old) {
    if (context.user.realm.kind === 'installation') return
    const annotations = { ...object.metadata.annotations }
    const kept = owned(old)
    for (const [name, value] of Object.entries(annotations)) {
      if (!isOwn(name, object) || kept[name] === value) continue
      context.warnings.push(
        operation === 'CREATE'
          ? `metadata.annotations: "${name}" is set by kcp and was ignored`
          : `metadata.annotations: "${name}" is set by kcp and was left unchanged`,
      )
      Reflect.deleteProperty(annotations, name)
    }
    Object.assign(annotations, kept)
    if (Object.keys(annotations).length > 0) object.metadata.annotations = annotations
    else delete object.metadata.annotations
  },
}

function owned(object: KubeObject | undefined): Record<string, string> {
  return Object.fromEntries(
    Object.entries(object?.metadata.annotations ?? {}).filter(([name]) => object !== undefined && isOwn(name, object)),
  )
}

/**
 * Kubernetes' own Deployment controller, where a tenant runs it, copies the annotations of a Deployment to its ReplicaSets,
 * and does nothing else for as long as they differ. There the reason of the scheduler is only a text.
 */
function isOwn(name: string, { kind }: KubeObject): boolean {
  return isOwnAnnotation(name) && !(name === heldAnnotation && kind === 'ReplicaSet')
}
