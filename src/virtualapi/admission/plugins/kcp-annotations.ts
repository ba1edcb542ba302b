// Annotations in which the installation tells tenants what it decided. Tenants read them; only our own processes write.
import type { KubeObject } from '../../../apimachinery/meta/index.ts'
import { isOwnAnnotation } from '../../../crds/index.ts'
import type { AdmissionPlugin } from '../admission.ts'

/** Puts back what a tenant changed of them, with a warning; leaving them out of an update means unchanged. */
export const kcpAnnotations: AdmissionPlugin = {
  name: 'KcpAnnotations',
  mutate({ context, operation }, object, old) {
    if (context.user.realm.kind === 'installation') return
    const annotations = { ...object.metadata.annotations }
    const kept = owned(old)
    for (const [name, value] of Object.entries(annotations)) {
      if (!isOwnAnnotation(name) || kept[name] === value) continue
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
    Object.entries(object?.metadata.annotations ?? {}).filter(([name]) => isOwnAnnotation(name)),
  )
}
