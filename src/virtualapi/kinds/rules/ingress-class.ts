// IngressClasses: a controller and its parameters.
import type { V1IngressClassSpec } from '@kubernetes/client-node'
import {
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
} from '#apimachinery/field/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { domainPath, fieldImmutable, label } from '#virtualapi/kinds/validation/values.ts'
import { referenceCauses } from './ingress.ts'

type Parameters = NonNullable<Data<V1IngressClassSpec>['parameters']>

const maxControllerBytes = 250
const scopes = ['Cluster', 'Namespace']
const controllerOf = ({ spec }: KubeObject): string => (spec as Data<V1IngressClassSpec>).controller ?? ''

export const ingressClassRules: KindRules = {
  validate(object) {
    const { parameters } = object['spec'] as Data<V1IngressClassSpec>
    const controller = controllerOf(object)
    const path = 'spec.controller'
    return [
      ...(Buffer.byteLength(controller) > maxControllerBytes ? [fieldTooLong(path, maxControllerBytes)] : []),
      ...domainPath(path, controller),
      ...(parameters === undefined ? [] : parametersCauses('spec.parameters', parameters)),
    ]
  },
  validateChange: (object, old) =>
    controllerOf(object) === controllerOf(old)
      ? []
      : [fieldInvalid('spec.controller', controllerOf(object), fieldImmutable)],
}

function parametersCauses(path: string, parameters: Parameters): StatusCause[] {
  const { scope, namespace } = parameters
  const causes = referenceCauses(path, parameters)
  const at = `${path}.namespace`
  if (scope === undefined) return [...causes, fieldRequired(`${path}.scope`)]
  if (!scopes.includes(scope)) return [...causes, fieldNotSupported(`${path}.scope`, scope, scopes)]
  if (scope === 'Cluster')
    return namespace === undefined ? causes : [...causes, fieldForbidden(at, "`parameters.scope` is set to 'Cluster'")]
  if (namespace === undefined) return [...causes, fieldRequired(at, "`parameters.scope` is set to 'Namespace'")]
  return [...causes, ...label(at, namespace)]
}
