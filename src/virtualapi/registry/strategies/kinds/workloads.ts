// Deployments, ReplicaSets, StatefulSets, DaemonSets, ReplicationControllers and PodTemplates.
import { isDeepStrictEqual } from 'node:util'
import type {
  V1DaemonSetSpec,
  V1DeploymentSpec,
  V1ReplicaSetSpec,
  V1ReplicationControllerSpec,
  V1StatefulSetSpec,
} from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldNotSupported, fieldRequired } from '../../../../apimachinery/field/index.ts'
import { isOwnAnnotation } from '../../../../crds/index.ts'
import type { JsonValue, KubeObject } from '../../../../apimachinery/meta/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { KindRules } from '../kind-rules.ts'
import type { Data } from '../typed/data.ts'
import type { LabelSelector } from '../validation/label-selector.ts'
import {
  runningTemplateCauses,
  selectorCauses,
  templateCauses,
  type PodTemplate,
  unusableCauses,
} from '../validation/workload.ts'
import { atMostAll, fieldImmutable, intOrPercent, invalidStruct, nonNegative } from '../validation/values.ts'

const specOf = <T>(object: KubeObject): Data<T> => object['spec'] as Data<T>

const revisionAnnotation = 'deployment.kubernetes.io/revision'

function wanted({ metadata }: KubeObject, byUs: boolean): Record<string, string> {
  const entries = Object.entries(metadata.annotations ?? {})
  return Object.fromEntries(
    entries.filter(([name]) => !isOwnAnnotation(name) && !(byUs && name === revisionAnnotation)),
  )
}

export const deploymentRules: KindRules = {
  prepareForUpdate(object, old, { user }, subresource) {
    // Annotations are copied to ReplicaSets, so their change is one of what is wanted; our own tell what was done.
    const ours = user.realm.kind === 'installation'
    const changed = !isDeepStrictEqual(wanted(object, ours), wanted(old, ours))
    if (subresource === '' && changed) object.metadata.generation = (old.metadata.generation ?? 0) + 1
  },
  validate(object) {
    const spec = specOf<V1DeploymentSpec>(object)
    const { progressDeadlineSeconds: deadline, minReadySeconds = 0 } = spec
    return [
      ...nonNegative('spec.replicas', spec.replicas),
      ...selectorCauses('spec.selector', spec.selector, 'deployment'),
      ...unusableCauses('spec.selector', spec.selector),
      ...runningTemplateCauses('spec.template', spec.template, spec.selector),
      ...strategyCauses(spec.strategy ?? {}),
      ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
      ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
      ...nonNegative('spec.progressDeadlineSeconds', deadline),
      ...(deadline !== undefined && deadline <= minReadySeconds
        ? [fieldInvalid('spec.progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds')]
        : []),
    ]
  },
  validateChange: selectorStays,
}

function strategyCauses({ type, rollingUpdate }: NonNullable<Data<V1DeploymentSpec>['strategy']>): StatusCause[] {
  const path = 'spec.strategy'
  if (type === 'Recreate')
    return rollingUpdate === undefined
      ? []
      : [fieldForbidden(`${path}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'")]
  if (type !== 'RollingUpdate')
    return [
      {
        reason: 'FieldValueNotSupported',
        message: `Unsupported value: {"Type":${JSON.stringify(type ?? '')},"RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"`,
        field: path,
      },
    ]
  if (rollingUpdate === undefined)
    return [fieldRequired(`${path}.rollingUpdate`, 'this should be defaulted and never be nil')]
  const { maxSurge, maxUnavailable } = rollingUpdate
  const at = `${path}.rollingUpdate`
  return [
    ...intOrPercent(`${at}.maxUnavailable`, maxUnavailable),
    ...intOrPercent(`${at}.maxSurge`, maxSurge),
    ...(isZero(maxUnavailable) && isZero(maxSurge)
      ? [fieldInvalid(`${at}.maxUnavailable`, maxUnavailable ?? 0, 'may not be 0 when `maxSurge` is 0')]
      : []),
    ...atMostAll(`${at}.maxUnavailable`, maxUnavailable),
  ]
}

function isZero(value: number | string | undefined): boolean {
  return value === undefined || value === 0 || (typeof value === 'string' && /^0+%$/.test(value))
}

export const replicaSetRules: KindRules = {
  validate(object) {
    const spec = specOf<V1ReplicaSetSpec>(object)
    return [
      ...nonNegative('spec.replicas', spec.replicas),
      ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
      ...selectorCauses('spec.selector', spec.selector, 'replicaset'),
      ...unusableCauses('spec.selector', spec.selector),
      ...runningTemplateCauses('spec.template', spec.template ?? {}, spec.selector),
    ]
  },
  validateChange: selectorStays,
}

export const statefulSetRules: KindRules = {
  validate(object) {
    const spec = specOf<V1StatefulSetSpec>(object)
    const { podManagementPolicy: policy = '', updateStrategy: { type = '', rollingUpdate } = {} } = spec
    const causes: StatusCause[] = []
    if (policy === '') causes.push(fieldRequired('spec.podManagementPolicy'))
    else if (policy !== 'OrderedReady' && policy !== 'Parallel')
      causes.push(fieldInvalid('spec.podManagementPolicy', policy, "must be 'OrderedReady' or 'Parallel'"))
    const path = 'spec.updateStrategy'
    if (type === '') causes.push(fieldRequired(path))
    else if (type === 'OnDelete') {
      if (rollingUpdate !== undefined)
        causes.push(
          invalidStruct(
            `${path}.rollingUpdate`,
            { Partition: rollingUpdate.partition ?? 0, MaxUnavailable: rollingUpdate.maxUnavailable ?? null },
            "only allowed for updateStrategy 'RollingUpdate'",
          ),
        )
    } else if (type === 'RollingUpdate')
      causes.push(...nonNegative(`${path}.rollingUpdate.partition`, rollingUpdate?.partition))
    else causes.push(fieldInvalid(path, { type }, "must be 'RollingUpdate' or 'OnDelete'"))
    return [
      ...causes,
      ...nonNegative('spec.replicas', spec.replicas),
      ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
      ...nonNegative('spec.ordinals.start', spec.ordinals?.start),
      ...selectorCauses('spec.selector', spec.selector, 'statefulset'),
      // As upstream: its claims are not volumes yet, so what mounts them cannot be judged here.
      ...runningTemplateCauses('spec.template', spec.template, spec.selector, { podSpec: false }),
    ]
  },
  validateChange(object, old) {
    const fixed = (of: KubeObject): JsonValue => {
      const {
        replicas: _r,
        ordinals: _o,
        template: _t,
        updateStrategy: _u,
        revisionHistoryLimit: _h,
        persistentVolumeClaimRetentionPolicy: _p,
        minReadySeconds: _m,
        ...rest
      } = specOf<V1StatefulSetSpec>(of)
      return rest
    }
    if (isDeepStrictEqual(fixed(object), fixed(old))) return []
    return [
      fieldForbidden(
        'spec',
        "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', 'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and 'minReadySeconds' are forbidden",
      ),
    ]
  },
}

/** What a DaemonSet must be; see daemonset.ts for the rest of the kind. */
export const daemonSetChecks: KindRules = {
  validate(object) {
    const spec = specOf<V1DaemonSetSpec>(object)
    const { type, rollingUpdate } = spec.updateStrategy ?? {}
    const at = 'spec.updateStrategy.rollingUpdate'
    const causes: StatusCause[] = []
    if (type === 'RollingUpdate') {
      const { maxUnavailable, maxSurge } = rollingUpdate ?? {}
      causes.push(
        ...intOrPercent(`${at}.maxUnavailable`, maxUnavailable),
        ...atMostAll(`${at}.maxUnavailable`, maxUnavailable),
        ...intOrPercent(`${at}.maxSurge`, maxSurge),
        ...atMostAll(`${at}.maxSurge`, maxSurge),
      )
      if (isZero(maxUnavailable) && isZero(maxSurge))
        causes.push(fieldRequired(`${at}.maxUnavailable`, 'cannot be 0 when maxSurge is 0'))
      else if (!isZero(maxUnavailable) && !isZero(maxSurge))
        causes.push(fieldInvalid(`${at}.maxSurge`, maxSurge ?? 0, 'may not be set when maxUnavailable is non-zero'))
    } else if (type !== 'OnDelete')
      causes.push(fieldNotSupported('spec.updateStrategy.type', type ?? '', ['RollingUpdate', 'OnDelete']))
    return [
      ...selectorCauses('spec.selector', spec.selector, 'daemonset'),
      ...runningTemplateCauses('spec.template', spec.template, spec.selector),
      ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
      ...causes,
      ...nonNegative('spec.revisionHistoryLimit', spec.revisionHistoryLimit),
    ]
  },
  validateChange: selectorStays,
}

export const replicationControllerRules: KindRules = {
  validate(object) {
    const spec = specOf<V1ReplicationControllerSpec>(object)
    const { selector = {}, template } = spec
    const empty = Object.keys(selector).length === 0
    return [
      ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
      ...(empty ? [fieldRequired('spec.selector')] : []),
      ...nonNegative('spec.replicas', spec.replicas),
      ...(template === undefined
        ? [fieldRequired('spec.template')]
        : runningTemplateCauses('spec.template', template, { matchLabels: selector })),
    ]
  },
}

export const podTemplateRules: KindRules = {
  validate: (object) => templateCauses('template', object['template'] as PodTemplate),
}

function selectorStays(object: KubeObject, old: KubeObject): StatusCause[] {
  const selector = specOf<V1DeploymentSpec>(object).selector as LabelSelector | null
  const { selector: before } = specOf<V1DeploymentSpec>(old)
  return isDeepStrictEqual(selector, before) ? [] : [fieldInvalid('spec.selector', selector, fieldImmutable)]
}
