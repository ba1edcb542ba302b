// IngressClasses: a controller and its parameters.
import type { V1IngressClassSpec } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { domainPath, label } from '#virtualapi/kinds/validation/basic-rules.ts'
import {
  all,
  changes,
  fields,
  immutable,
  maxBytes,
  optional,
  orEmpty,
  validatingChange,
  validatingSpec,
  type ObjectOf,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import { typedReference } from './ingress.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1IngressClassSpec>

const parameters = all<NonNullable<Spec['parameters']>>(typedReference, ({ scope, namespace }, report) => {
  if (scope === undefined) report.required('scope')
  else if (scope === 'Cluster') {
    if (namespace !== undefined) report.forbidden('namespace', "`parameters.scope` is set to 'Cluster'")
  } else if (scope !== 'Namespace') report.notSupported('scope', scope, ['Cluster', 'Namespace'])
  else if (namespace === undefined) report.required('namespace', "`parameters.scope` is set to 'Namespace'")
  else report.at('namespace', label, namespace)
})

const specRule = fields<Spec>({
  controller: orEmpty(all<string>(maxBytes(250), domainPath)),
  parameters: optional(parameters),
})

export const ingressClassRules: KindRules = {
  validate: validatingSpec(specRule),
  validateChange: validatingChange(
    changes<ObjectOf<Spec>>({
      spec: changes<Spec>({ controller: (now, report, old) => report.check(fixed, now ?? '', old ?? '') }),
    }),
  ),
}
const fixed = immutable()
