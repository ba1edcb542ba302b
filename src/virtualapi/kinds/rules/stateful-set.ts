// StatefulSets: pods with stable names and claims.
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { V1StatefulSetSpec } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '#apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { claimSpecCauses, type ClaimSpec } from '#virtualapi/kinds/validation/persistent-volume-claim-spec.ts'
import { isEmptySelector } from '#virtualapi/kinds/validation/label-selector.ts'
import {
  alwaysRunningCauses,
  isUsable,
  selectorCauses,
  templateCauses,
  templateMetaCauses,
  unselectedCauses,
  unusableCauses,
  type PodTemplate,
} from '#virtualapi/kinds/validation/workload.ts'
import { label, nonNegative } from '#virtualapi/kinds/validation/values.ts'
import { claimResourceWarnings } from '#virtualapi/kinds/warnings/fractional-byte-warnings.ts'
import { isSameSpec, templateWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'

type Spec = Data<V1StatefulSetSpec>

const specOf = (object: KubeObject): Spec => object['spec'] as Spec
const retentions = ['Retain', 'Delete']

/** Rules to leave out: those of immutable fields for an existing object, and all for a template that was invalid before. */
interface Leniency {
  readonly exists: boolean
  readonly badTemplate: boolean
}

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
  validate(object, old) {
    if (old === undefined) return specCauses(specOf(object), { exists: false, badTemplate: false })
    const badTemplate = specCauses(specOf(old), { exists: true, badTemplate: false }).length > 0
    return specCauses(specOf(object), { exists: true, badTemplate })
  },
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

function specCauses(spec: Spec, { exists, badTemplate }: Leniency): StatusCause[] {
  const { podManagementPolicy: policy = '', serviceName = '', volumeClaimTemplates: claims = [], selector } = spec
  const causes: StatusCause[] = []
  if (policy === '') causes.push(fieldRequired('spec.podManagementPolicy'))
  else if (policy !== 'OrderedReady' && policy !== 'Parallel')
    causes.push(fieldInvalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'"))
  const { whenDeleted, whenScaled } = spec.persistentVolumeClaimRetentionPolicy ?? {}
  for (const [member, value] of Object.entries({ whenDeleted, whenScaled }))
    if (value !== undefined && !retentions.includes(value))
      causes.push(fieldNotSupported(`spec.persistentVolumeClaimRetentionPolicy.${member}`, value, retentions))
  return [
    ...causes,
    ...strategyCauses('spec.updateStrategy', spec.updateStrategy ?? {}),
    ...(exists
      ? []
      : claims.flatMap((claim, index) =>
          claimSpecCauses(`spec.volumeClaimTemplates[${index}].spec`, claim.spec as ClaimSpec),
        )),
    ...nonNegative('spec.replicas', spec.replicas),
    ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
    ...nonNegative('spec.ordinals.start', spec.ordinals?.start),
    ...(exists || serviceName === '' ? [] : label('spec.serviceName', serviceName)),
    ...selectorCauses('spec.selector', selector, 'statefulset'),
    ...(isUsable(selector) ? podCauses(spec, { badTemplate }) : unusableCauses('spec.selector', selector, '')),
    ...alwaysRunningCauses('spec.template', spec.template, 'StatefulSet'),
  ]
}

/** Validates the template as the controller uses it: with the claims as volumes, and without hostname and subdomain. */
function podCauses(spec: Spec, { badTemplate }: { badTemplate: boolean }): StatusCause[] {
  const { selector, template } = spec as Omit<Spec, 'selector'> & { selector: Spec['selector'] | null }
  const path = 'spec.template'
  const used = asControllerUses(template, spec.volumeClaimTemplates ?? [])
  return [
    ...(selector && isEmptySelector(selector) ? [] : unselectedCauses(path, template, selector)),
    ...(badTemplate ? [] : templateCauses(path, used)),
    // As upstream, which validates labels and annotations twice.
    ...templateMetaCauses(path, template),
  ]
}

function asControllerUses(template: PodTemplate, claims: NonNullable<Spec['volumeClaimTemplates']>): PodTemplate {
  if (template.spec === undefined) return template
  const { subdomain: _s, hostname: _h, volumes = [], ...spec } = template.spec
  const names = new Set(claims.map(({ metadata }) => metadata?.name ?? ''))
  const mounted = [...names].map((name) => ({ name, persistentVolumeClaim: { claimName: name } }))
  const all = [...mounted, ...volumes.filter(({ name }) => !names.has(name))]
  return { ...template, spec: { ...spec, ...(all.length > 0 ? { volumes: all } : {}) } }
}

function strategyCauses(path: string, strategy: NonNullable<Spec['updateStrategy']>): StatusCause[] {
  const { type = '', rollingUpdate } = strategy
  const at = `${path}.rollingUpdate`
  if (type === '') return [fieldRequired(path)]
  if (type === 'OnDelete')
    return rollingUpdate === undefined
      ? []
      : [
          invalidInternal(
            at,
            'apps.RollingUpdateStatefulSetStrategy',
            rollingUpdate,
            "only allowed for updateStrategy 'RollingUpdate'",
          ),
        ]
  if (type !== 'RollingUpdate')
    return [invalidInternal(path, 'apps.StatefulSetUpdateStrategy', strategy, "must be 'RollingUpdate' or 'OnDelete'")]
  return nonNegative(`${at}.partition`, rollingUpdate?.partition)
}
