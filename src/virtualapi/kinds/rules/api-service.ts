// APIServices: which server serves a group version, this one (Local) or one behind a Service.
import type { V1APIServiceSpec } from '@kubernetes/client-node'
import {
  dns1035LabelErrors,
  dns1123SubdomainErrors,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { isBuiltInGroup } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1APIServiceSpec>

const specOf = (object: KubeObject): Spec => object['spec'] as Spec

const statuses = ['False', 'True', 'Unknown']

export const apiServiceRules: KindRules = {
  prepareForCreate(object, { now }) {
    if (specOf(object).service !== undefined) return
    // JSON.stringify keeps milliseconds, which metav1.Time does not have.
    const lastTransitionTime = `${new Date(now).toISOString().slice(0, 19)}Z`
    object['status'] = { conditions: [localCondition(lastTransitionTime)] }
  },
  validate(object) {
    const spec = specOf(object)
    return [
      ...nameCauses(object.metadata.name ?? '', spec),
      ...groupVersionCauses(spec),
      ...priorityCauses('spec.groupPriorityMinimum', spec.groupPriorityMinimum, 20000),
      ...priorityCauses('spec.versionPriority', spec.versionPriority, 1000),
      ...(spec.service === undefined ? localCauses(spec) : remoteCauses(spec)),
    ]
  },
  validateSubresource(object, _old, subresource) {
    const { status } = object
    const conditions = subresource === 'status' && isJsonObject(status) ? status['conditions'] : undefined
    if (!Array.isArray(conditions)) return []
    return conditions.flatMap((condition, i) => {
      const value = isJsonObject(condition) && typeof condition['status'] === 'string' ? condition['status'] : ''
      return statuses.includes(value)
        ? []
        : [fieldNotSupported(`status.conditions[${i}].status`, value, ['True', 'False', 'Unknown'])]
    })
  },
}

function localCondition(lastTransitionTime: string) {
  return {
    type: 'Available',
    status: 'True',
    lastTransitionTime,
    reason: 'Local',
    message: 'Local APIServices are always available',
  }
}

function nameCauses(name: string, { group = '', version = '' }: Spec): StatusCause[] {
  const wanted = `${version}.${group}`
  return name === wanted
    ? []
    : [fieldInvalid('metadata.name', name, `must be \`spec.version+"."+spec.group\`: ${goQuote(wanted)}`)]
}

function groupVersionCauses({ group = '', version = '' }: Spec): StatusCause[] {
  return [
    ...(group === '' && version !== 'v1'
      ? [fieldRequired('spec.group', 'only v1 may have an empty group and it better be legacy kube')]
      : []),
    ...(group === '' ? [] : dns1123SubdomainErrors(group).map((text) => fieldInvalid('spec.group', group, text))),
    ...dns1035LabelErrors(version).map((text) => fieldInvalid('spec.version', version, text)),
  ]
}

function priorityCauses(path: string, value: number, below: number): StatusCause[] {
  return value > 0 && value <= below ? [] : [fieldInvalid(path, value, `must be positive and less than ${below}`)]
}

function localCauses({ caBundle = '', insecureSkipTLSVerify = false }: Spec): StatusCause[] {
  const bytes = Buffer.from(caBundle, 'base64').length
  return [
    ...(bytes > 0
      ? [fieldInvalid('spec.caBundle', `${bytes} bytes`, 'local APIServices may not have a caBundle')]
      : []),
    ...(insecureSkipTLSVerify
      ? [fieldInvalid('spec.insecureSkipTLSVerify', true, 'local APIServices may not have insecureSkipTLSVerify')]
      : []),
  ]
}

function remoteCauses({ service, group = '', caBundle = '', insecureSkipTLSVerify = false }: Spec): StatusCause[] {
  const { namespace = '', name = '', port = 443 } = service ?? {}
  return [
    ...(namespace === '' ? [fieldRequired('spec.service.namespace')] : []),
    ...(name === '' ? [fieldRequired('spec.service.name')] : []),
    ...(port < 1 || port > 65535
      ? [fieldInvalid('spec.service.port', port, 'port is not valid: must be between 1 and 65535, inclusive')]
      : []),
    ...(insecureSkipTLSVerify && caBundle !== ''
      ? [fieldInvalid('spec.insecureSkipTLSVerify', true, 'may not be true if caBundle is present')]
      : []),
    // Unlike upstream: the controllers and syncers of kcp rely on these groups.
    ...(isBuiltInGroup(group)
      ? [fieldForbidden('spec.service', 'built-in groups are served by the logical cluster itself')]
      : []),
  ]
}
