// Lets pods stay for five minutes on a node that is not ready or not reachable, by default.
import type { AdmissionPlugin } from '#virtualapi/write/admission/admission.ts'

interface Toleration {
  key?: string
  operator?: string
  effect?: string
  tolerationSeconds?: number
}

const tolerationSeconds = 300
const keys = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable']

/**
 * Adds tolerations for the taints in `keys` that a pod does not tolerate. Runs on updates, too, because a PUT of the
 * manifest must not drop them.
 */
export const defaultTolerations: AdmissionPlugin = {
  name: 'DefaultTolerationSeconds',
  mutate({ operation, definition, subresource, context }, object) {
    const { group, resource } = definition.info
    if (operation === 'DELETE' || subresource !== '' || group !== '' || resource !== 'pods') return
    if (context.user.realm.kind === 'installation') return
    const spec = object['spec'] as { tolerations?: Toleration[] }
    const tolerations = spec.tolerations ?? []
    const missing = keys.filter((wanted) => !tolerations.some((toleration) => tolerates(toleration, wanted)))
    if (missing.length === 0) return
    spec.tolerations = [
      ...tolerations,
      ...missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds: tolerationSeconds })),
    ]
  },
}

function tolerates({ key = '', effect = '' }: Toleration, wanted: string): boolean {
  return (key === wanted || key === '') && (effect === 'NoExecute' || effect === '')
}
