// Deployments and ReplicaSets.
import { jsonEqual } from '#apimachinery/json/index.ts'
import type { V1DeploymentSpec, V1ReplicaSetSpec } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid, fieldRequired } from '#apimachinery/field/index.ts'
import { goValue } from '#apimachinery/text/index.ts'
import { isOwnAnnotation } from '#crds/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { KindRules } from './kind-rules.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText, invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { isEmptySelector, type LabelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import {
  alwaysRunningCauses,
  isUsable,
  selectorCauses,
  templateCauses,
  unselectedCauses,
  unusableCauses,
  type PodTemplate,
} from '#virtualapi/kinds/validation/workload.ts'
import {
  atMostAll,
  fieldImmutable,
  intOrPercent,
  isZeroAmount,
  nonNegative,
} from '#virtualapi/kinds/validation/values.ts'
import { isSameSpec, podOwnerNameWarnings, templateWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'

const specOf = <T>(object: KubeObject): Data<T> => object['spec'] as Data<T>

const revisionAnnotation = 'deployment.kubernetes.io/revision'

function countedAnnotations({ metadata }: KubeObject, byKcp: boolean): Record<string, string> {
  const entries = Object.entries(metadata.annotations ?? {})
  return Object.fromEntries(
    entries.filter(([name]) => !isOwnAnnotation(name) && !(byKcp && name === revisionAnnotation)),
  )
}

/** The feature gate of terminatingReplicas is off by default. */
function dropTerminating({ status }: KubeObject): void {
  if (isJsonObject(status)) delete status['terminatingReplicas']
}

export const deploymentRules: KindRules = {
  warningsOf: ownerWarnings,
  dropDisabled: dropTerminating,
  prepareForUpdate(object, old, { user }, subresource) {
    // Annotations are copied to ReplicaSets, so a change raises the generation. Those that kcp itself writes report
    // progress and do not count.
    const byKcp = user.realm.kind === 'installation'
    const changed = !jsonEqual(countedAnnotations(object, byKcp), countedAnnotations(old, byKcp))
    if (subresource === '' && changed) object.metadata.generation = (old.metadata.generation ?? 0) + 1
  },
  validate(object) {
    const spec = specOf<V1DeploymentSpec>(object)
    const { progressDeadlineSeconds: deadline, minReadySeconds = 0 } = spec
    return [
      ...nonNegative('spec.replicas', spec.replicas),
      ...selectorCauses('spec.selector', spec.selector, 'deployment'),
      ...selectedTemplateCauses('spec', spec.selector, spec.template),
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

/** Warnings about the template of a new or changed object, and about the name of a new one. */
function ownerWarnings(object: KubeObject, old: KubeObject | undefined): readonly string[] {
  if (isSameSpec(object, old)) return []
  const { template } = specOf<V1DeploymentSpec>(object)
  const ofName = old === undefined ? podOwnerNameWarnings(object) : []
  return [...ofName, ...templateWarnings('spec.template', template)]
}

/** Validates the template if the selector can be converted to a matcher. */
function selectedTemplateCauses(
  path: string,
  selector: LabelSelector | null | undefined,
  template: PodTemplate,
): StatusCause[] {
  if (!isUsable(selector)) return unusableCauses(`${path}.selector`, selector)
  const at = `${path}.template`
  return [
    ...(selector && isEmptySelector(selector) ? [] : unselectedCauses(at, template, selector)),
    ...templateCauses(at, template),
    ...alwaysRunningCauses(at, template, 'ReplicaSet'),
  ]
}

type Strategy = NonNullable<Data<V1DeploymentSpec>['strategy']>

function strategyCauses(strategy: Strategy): StatusCause[] {
  const { type, rollingUpdate } = strategy
  const path = 'spec.strategy'
  if (type === 'Recreate')
    return rollingUpdate === undefined
      ? []
      : [fieldForbidden(`${path}.rollingUpdate`, "may not be specified when strategy `type` is 'Recreate'")]
  if (type !== 'RollingUpdate')
    return [unsupportedStrategy(path, 'apps.DeploymentStrategy', strategy, ['Recreate', 'RollingUpdate'])]
  if (rollingUpdate === undefined)
    return [fieldRequired(`${path}.rollingUpdate`, 'this should be defaulted and never be nil')]
  const { maxSurge, maxUnavailable } = rollingUpdate
  const at = `${path}.rollingUpdate`
  return [
    ...intOrPercent(`${at}.maxUnavailable`, maxUnavailable),
    ...intOrPercent(`${at}.maxSurge`, maxSurge),
    ...(isZeroAmount(maxUnavailable) && isZeroAmount(maxSurge)
      ? [fieldInvalid(`${at}.maxUnavailable`, maxUnavailable ?? 0, 'may not be 0 when `maxSurge` is 0')]
      : []),
    ...atMostAll(`${at}.maxUnavailable`, maxUnavailable),
  ]
}

/** The error for an unknown strategy type. As upstream, it prints the whole strategy. */
export function unsupportedStrategy(
  field: string,
  struct: string,
  strategy: object,
  types: readonly string[],
): StatusCause {
  const message = `Unsupported value: ${internalText(struct, strategy)}: supported values: ${types.map(goValue).join(', ')}`
  return { reason: 'FieldValueNotSupported', message, field }
}

export const replicaSetRules: KindRules = {
  warningsOf: ownerWarnings,
  dropDisabled: dropTerminating,
  validate(object) {
    const spec = specOf<V1ReplicaSetSpec>(object)
    return [
      ...nonNegative('spec.replicas', spec.replicas),
      ...nonNegative('spec.minReadySeconds', spec.minReadySeconds),
      ...selectorCauses('spec.selector', spec.selector, 'deployment'),
      ...selectedTemplateCauses('spec', spec.selector, spec.template ?? {}),
    ]
  },
  validateChange: selectorStays,
}

/** The selector is immutable, in every kind that finds its pods by it. */
export function selectorStays(object: KubeObject, old: KubeObject): StatusCause[] {
  const { selector } = specOf<V1DeploymentSpec>(object)
  if (jsonEqual(selector, specOf<V1DeploymentSpec>(old).selector)) return []
  return [invalidInternal('spec.selector', 'v1.LabelSelector', selector, fieldImmutable)]
}
