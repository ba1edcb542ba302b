// StatefulSets: pods with stable names and claims.
import type { V1PersistentVolumeClaim, V1StatefulSetSpec } from '@kubernetes/client-node'
import { fieldForbidden } from '#apimachinery/field/index.ts'
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import { isEmptySelector } from '#virtualapi/kinds/validation/label-selector.ts'
import { claimSpec } from '#virtualapi/kinds/validation/persistent-volume-claim-spec.ts'
import {
  all,
  causesOf,
  each,
  fields,
  given,
  must,
  oneOf,
  optional,
  required,
  validating,
  when,
  type ObjectOf,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import {
  alwaysRunning,
  isUsable,
  podTemplate,
  selectedTemplate,
  selectorOf,
  templateMeta,
  type PodTemplate,
} from '#virtualapi/kinds/validation/workload.ts'
import { claimResourceWarnings } from '#virtualapi/kinds/warnings/fractional-byte-warnings.ts'
import { isSameSpec, templateWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'
import type { KindRules } from './kind-rules.ts'

type Spec = Data<V1StatefulSetSpec>

const specOf = (object: KubeObject): Spec => object['spec'] as Spec

/** Rules to leave out: those of immutable fields of a stored object, and those of a template that was invalid. */
interface Leniency {
  readonly exists: boolean
  readonly badTemplate: boolean
}

type Strategy = NonNullable<Spec['updateStrategy']>

const strategyRule: Rule<Strategy | undefined> = (strategy = {}, report) => {
  const { type = '', rollingUpdate } = strategy
  if (type === '') report.required('')
  else if (type === 'RollingUpdate') report.at('rollingUpdate.partition', nonNegative, rollingUpdate?.partition)
  else if (type !== 'OnDelete')
    report.invalidStruct('', 'apps.StatefulSetUpdateStrategy', strategy, "must be 'RollingUpdate' or 'OnDelete'")
  else if (rollingUpdate !== undefined)
    report.invalidStruct(
      'rollingUpdate',
      'apps.RollingUpdateStatefulSetStrategy',
      rollingUpdate,
      "only allowed for updateStrategy 'RollingUpdate'",
    )
}

const retention = oneOf(['Retain', 'Delete'])
const newOnly = <T>(rule: Rule<T>): Rule<T, Leniency> => when<T, Leniency>((_, { exists }) => !exists, rule)

/** The template as the controller uses it: with the claims as volumes, and without hostname and subdomain. */
const selected: Rule<Spec, Leniency> = (spec, report, { badTemplate }) => {
  const {
    selector,
    template,
    volumeClaimTemplates = [],
  } = spec as Omit<Spec, 'selector'> & {
    selector: Spec['selector'] | null
  }
  if (!isUsable(selector)) {
    report.invalidStruct('selector', 'v1.LabelSelector', selector, '')
    return
  }
  if (!selector || !isEmptySelector(selector)) report.at('template', selectedTemplate, template, selector)
  if (!badTemplate) report.at('template', podTemplate, asControllerUses(template, volumeClaimTemplates))
  // As upstream, which validates labels and annotations twice.
  report.at('template', templateMeta, template)
}

const specRule = all<Spec, Leniency>(
  fields<Spec, Leniency>({
    podManagementPolicy: required(
      must((policy) => policy === 'OrderedReady' || policy === 'Parallel', "must be 'OrderedReady' or 'Parallel'"),
    ),
    persistentVolumeClaimRetentionPolicy: optional(
      fields<NonNullable<Spec['persistentVolumeClaimRetentionPolicy']>>({
        whenDeleted: retention,
        whenScaled: retention,
      }),
    ),
    updateStrategy: strategyRule,
    volumeClaimTemplates: newOnly(each(fields<Data<V1PersistentVolumeClaim>>({ spec: optional(claimSpec) }))),
    replicas: nonNegative,
    minReadySeconds: nonNegative,
    ordinals: optional(fields<NonNullable<Spec['ordinals']>>({ start: nonNegative })),
    serviceName: newOnly(given(label)),
    selector: selectorOf('statefulset'),
  }),
  selected,
  fields<Spec>({ template: alwaysRunning('StatefulSet') }),
)

export const statefulSetRules: KindRules = {
  warningsOf(object, old) {
    const { template, volumeClaimTemplates: claims = [], revisionHistoryLimit: limit = 0 } = specOf(object)
    const same = isSameSpec(object, old)
    // As upstream, whose paths differ between create and update.
    const member = old === undefined ? '' : '.Spec'
    return [
      ...(same ? [] : templateWarnings('spec.template', template)),
      ...claims.flatMap(({ spec }, index) => [
        ...claimResourceWarnings(`spec.volumeClaimTemplates[${index}]${member}.resources`, spec?.resources),
      ]),
      ...(limit < 0
        ? ['spec.revisionHistoryLimit: a negative value retains all historical revisions; a value >= 0 is recommended']
        : []),
    ]
  },
  dropDisabled({ spec }) {
    // The feature gate of maxUnavailable is off by default.
    const { rollingUpdate } = ((spec ?? {}) as Partial<Spec>).updateStrategy ?? {}
    if (rollingUpdate) delete rollingUpdate.maxUnavailable
  },
  validate: validating<ObjectOf<Spec>>((object, report, old) => {
    const exists = old !== undefined
    const badTemplate = exists && causesOf(specRule, '', old.spec, { exists, badTemplate: false }).length > 0
    report.at('spec', specRule, object.spec, { exists, badTemplate })
  }),
  validateChange(object, old) {
    if (jsonEqual(fixed(object), fixed(old))) return []
    return [
      fieldForbidden(
        'spec',
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
      ),
    ]
  },
}

function fixed(object: KubeObject): JsonValue {
  const {
    replicas: _r,
    ordinals: _o,
    template: _t,
    updateStrategy: _u,
    revisionHistoryLimit: _h,
    persistentVolumeClaimRetentionPolicy: _p,
    minReadySeconds: _m,
    ...rest
  } = specOf(object)
  return rest
}

function asControllerUses(template: PodTemplate, claims: NonNullable<Spec['volumeClaimTemplates']>): PodTemplate {
  if (template.spec === undefined) return template
  const { subdomain: _s, hostname: _h, volumes = [], ...spec } = template.spec
  const names = new Set(claims.map(({ metadata }) => metadata?.name ?? ''))
  const mounted = [...names].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }))
  const all = [...mounted, ...volumes.filter(({ name }) => !names.has(name))]
  return { ...template, spec: { ...spec, ...(all.length > 0 ? { volumes: all } : {}) } }
}
