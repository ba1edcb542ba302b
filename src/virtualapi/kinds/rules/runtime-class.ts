// RuntimeClasses: handler, overhead and scheduling constraints of a container runtime.
import type { V1Overhead, V1RuntimeClass, V1Scheduling, V1Toleration } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { label, labels } from '#virtualapi/kinds/validation/basic-rules.ts'
import { deprecatedNodeLabel } from '#virtualapi/kinds/validation/deprecated-node-labels.ts'
import { overhead } from '#virtualapi/kinds/validation/pod-spec.ts'
import { tolerations } from '#virtualapi/kinds/validation/scheduling.ts'
import {
  all,
  changes,
  each,
  fields,
  immutable,
  optional,
  validating,
  validatingChange,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type RuntimeClass = Data<V1RuntimeClass>

const repeated: Rule<Data<V1Toleration>> = (one, report) => {
  const { tolerationSeconds: _, ...key } = one
  if (!report.isRepeated(repeated, internalText('core.Toleration', key))) return
  const message = `Duplicate value: ${internalText('core.Toleration', one)}`
  report.add({ reason: 'FieldValueDuplicate', message, field: report.path() })
}

const scheduling = all<Data<V1Scheduling>>(
  fields({ nodeSelector: labels }),
  // As upstream, whose path has `tolerations` twice.
  ({ tolerations: list }, report) => report.at('tolerations.tolerations', tolerations, list),
  fields({ tolerations: each(repeated) }),
)

export const runtimeClassRules: KindRules = {
  warningsOf: (object) =>
    Object.keys((object as unknown as Data<V1RuntimeClass>).scheduling?.nodeSelector ?? {}).flatMap((key) => {
      const why = deprecatedNodeLabel(key)
      return why === undefined ? [] : [`scheduling.nodeSelector: ${why}`]
    }),
  validate: validating(
    fields<RuntimeClass>({
      handler: label,
      // As upstream, whose path lacks `podFixed`.
      overhead: optional<Data<V1Overhead>>(({ podFixed = {} }, report) => report.check(overhead, podFixed)),
      scheduling: optional(scheduling),
    }),
  ),
  validateChange: validatingChange(changes<RuntimeClass>({ handler: immutable() })),
}
