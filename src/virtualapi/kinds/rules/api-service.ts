// APIServices: which server serves a group version, this one (Local) or one behind a Service.
import type { V1APIServiceSpec } from '@kubernetes/client-node'
import { dns1035LabelErrors } from '#apimachinery/field/index.ts'
import { isJsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { isBuiltInGroup } from '#virtualapi/kinds/resources/builtin-resources.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { servicePort, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import {
  all,
  causesOf,
  each,
  fields,
  given,
  must,
  nonEmpty,
  oneOf,
  optional,
  orEmpty,
  text,
  validating,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1APIServiceSpec>

const priority = (below: number): Rule<number> =>
  must((value: number) => value > 0 && value <= below, `must be positive and less than ${below}`)

const local: Rule<Spec> = ({ caBundle = '', insecureSkipTLSVerify = false }, report) => {
  const bytes = Buffer.from(caBundle, 'base64').length
  if (bytes > 0) report.invalid('caBundle', `${bytes} bytes`, 'local APIServices may not have a caBundle')
  if (insecureSkipTLSVerify)
    report.invalid('insecureSkipTLSVerify', true, 'local APIServices may not have insecureSkipTLSVerify')
}

const remote = all<Spec>(
  fields<Spec>({
    service: optional(
      fields<NonNullable<Spec['service']>>({ namespace: nonEmpty(), name: nonEmpty(), port: servicePort }),
    ),
  }),
  ({ group = '', caBundle = '', insecureSkipTLSVerify = false }, report) => {
    if (insecureSkipTLSVerify && caBundle !== '')
      report.invalid('insecureSkipTLSVerify', true, 'may not be true if caBundle is present')
    // Unlike upstream: the controllers and syncers of kcp rely on these groups.
    if (isBuiltInGroup(group)) report.forbidden('service', 'built-in groups are served by the logical cluster itself')
  },
)

const specRule = all<Spec>(
  ({ group = '', version = '' }, report) => {
    if (group === '' && version !== 'v1')
      report.required('group', 'only v1 may have an empty group and it better be legacy kube')
  },
  fields<Spec>({
    group: given(subdomain),
    version: orEmpty(text(dns1035LabelErrors)),
    groupPriorityMinimum: priority(20000),
    versionPriority: priority(1000),
  }),
  (spec, report) => report.check(spec.service === undefined ? local : remote, spec),
)

const conditions = each<JsonValue>((condition, report) => {
  const value = isJsonObject(condition) && typeof condition['status'] === 'string' ? condition['status'] : ''
  report.at('status', conditionStatus, value)
})
const conditionStatus = oneOf(['True', 'False', 'Unknown'])

export const apiServiceRules: KindRules = {
  prepareForCreate(object, { now }) {
    if ((object['spec'] as Spec).service !== undefined) return
    // JSON.stringify keeps milliseconds, which metav1.Time does not have.
    const lastTransitionTime = `${new Date(now).toISOString().slice(0, 19)}Z`
    object['status'] = { conditions: [localCondition(lastTransitionTime)] }
  },
  validate: validating<ObjectOf<Spec>>(({ metadata, spec }, report) => {
    const { group = '', version = '' } = spec
    const [name, wanted] = [metadata.name ?? '', `${version}.${group}`]
    if (name !== wanted)
      report.invalid('metadata.name', name, `must be \`spec.version+"."+spec.group\`: ${goQuote(wanted)}`)
    report.at('spec', specRule, spec)
  }),
  validateSubresource(object, _old, subresource) {
    const { status } = object
    const list = subresource === 'status' && isJsonObject(status) ? status['conditions'] : undefined
    return Array.isArray(list) ? causesOf(conditions, 'status.conditions', list) : []
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
