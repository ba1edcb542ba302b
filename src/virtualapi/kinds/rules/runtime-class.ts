// RuntimeClasses: handler, overhead and scheduling constraints of a container runtime.
import type { V1RuntimeClass, V1Scheduling } from '@kubernetes/client-node'
import { fieldInvalid } from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { overheadCauses } from '#virtualapi/kinds/validation/pod-spec.ts'
import { tolerationCauses } from '#virtualapi/kinds/validation/scheduling.ts'
import { fieldImmutable, label, labels } from '#virtualapi/kinds/validation/values.ts'
import { deprecatedNodeLabel } from '#virtualapi/kinds/validation/deprecated-node-labels.ts'

const handlerOf = (object: KubeObject): string => (object['handler'] as string | undefined) ?? ''

export const runtimeClassRules: KindRules = {
  warningsOf: (object) =>
    Object.keys((object as unknown as Data<V1RuntimeClass>).scheduling?.nodeSelector ?? {}).flatMap((key) => {
      const why = deprecatedNodeLabel(key)
      return why === undefined ? [] : [`scheduling.nodeSelector: ${why}`]
    }),
  validate(object) {
    const { overhead, scheduling } = object as unknown as Data<V1RuntimeClass>
    return [
      ...label('handler', handlerOf(object)),
      ...(overhead === undefined ? [] : overheadCauses('overhead', overhead.podFixed ?? {})),
      ...(scheduling === undefined ? [] : schedulingCauses('scheduling', scheduling)),
    ]
  },
  validateChange: (object, old) =>
    handlerOf(object) === handlerOf(old) ? [] : [fieldInvalid('handler', handlerOf(object), fieldImmutable)],
}

function schedulingCauses(path: string, { nodeSelector, tolerations = [] }: Data<V1Scheduling>): StatusCause[] {
  const seen = new Set<string>()
  return [
    ...labels(`${path}.nodeSelector`, nodeSelector),
    ...tolerationCauses(`${path}.tolerations.tolerations`, tolerations),
    ...tolerations.flatMap((toleration, index): StatusCause[] => {
      const { tolerationSeconds: _s, ...key } = toleration
      const text = internalText('core.Toleration', key)
      if (!seen.has(text)) {
        seen.add(text)
        return []
      }
      const shown = internalText('core.Toleration', toleration)
      return [
        {
          reason: 'FieldValueDuplicate',
          message: `Duplicate value: ${shown}`,
          field: `${path}.tolerations[${index}]`,
        },
      ]
    }),
  ]
}
