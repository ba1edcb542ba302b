// Deployments and ReplicaSets.
import type { V1DeploymentSpec, V1ReplicaSetSpec } from '@kubernetes/client-node'
import { jsonEqual } from '#apimachinery/json/index.ts'
import { isJsonObject, type KubeObject } from '#apimachinery/meta/index.ts'
import { goValue } from '#apimachinery/text/index.ts'
import { isOwnAnnotation } from '#crds/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { internalText } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { atMostAll, intOrPercent, isZeroAmount, nonNegative } from '#virtualapi/kinds/validation/basic-rules.ts'
import { isEmptySelector, type LabelSelector } from '#virtualapi/kinds/validation/label-selector.ts'
import {
  all,
  changes,
  fields,
  forbidden,
  immutable,
  present,
  validatingChange,
  validatingSpec,
  type ObjectOf,
  type Report,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import {
  alwaysRunning,
  isUsable,
  podTemplate,
  selectedTemplate,
  selectorOf,
  type PodTemplate,
} from '#virtualapi/kinds/validation/workload.ts'
import { isSameSpec, podOwnerNameWarnings, templateWarnings } from '#virtualapi/kinds/warnings/pod-warnings.ts'
import type { KindRules } from './kind-rules.ts'

type DeploymentSpec = Data<V1DeploymentSpec>

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

const ofReplicaSet = all(podTemplate, alwaysRunning('ReplicaSet'))

/** The template, if the selector can be converted to a matcher. */
const selected: Rule<{ selector: LabelSelector | null; template?: PodTemplate }> = (spec, report) => {
  const { selector, template = {} } = spec
  if (!isUsable(selector)) {
    report.invalidStruct('selector', 'v1.LabelSelector', selector, 'invalid label selector')
    return
  }
  if (!selector || !isEmptySelector(selector)) report.at('template', selectedTemplate, template, selector)
  report.at('template', ofReplicaSet, template)
}

const surgeAndUnavailable = all<{ maxSurge?: number | string; maxUnavailable?: number | string }>(
  fields({ maxUnavailable: intOrPercent, maxSurge: intOrPercent }),
  ({ maxSurge, maxUnavailable }, report) => {
    if (isZeroAmount(maxUnavailable) && isZeroAmount(maxSurge))
      report.invalid('maxUnavailable', maxUnavailable ?? 0, 'may not be 0 when `maxSurge` is 0')
  },
  fields({ maxUnavailable: atMostAll }),
)
const forRollingUpdate = present(surgeAndUnavailable, 'this should be defaulted and never be nil')
const notForRecreate = forbidden("may not be specified when strategy `type` is 'Recreate'")

const strategyRule: Rule<DeploymentSpec['strategy']> = (strategy = {}, report) => {
  const { type, rollingUpdate } = strategy
  if (type === 'Recreate') report.at('rollingUpdate', notForRecreate, rollingUpdate)
  else if (type === 'RollingUpdate') report.at('rollingUpdate', forRollingUpdate, rollingUpdate)
  else unsupportedStrategy(report, 'apps.DeploymentStrategy', strategy, ['Recreate', 'RollingUpdate'])
}

/** Reports an unknown strategy type. As upstream, the error prints the whole strategy. */
export function unsupportedStrategy(report: Report, struct: string, strategy: object, types: readonly string[]): void {
  const message = `Unsupported value: ${internalText(struct, strategy)}: supported values: ${types.map(goValue).join(', ')}`
  report.add({ reason: 'FieldValueNotSupported', message, field: report.path() })
}

const deploymentSpec = all<DeploymentSpec>(
  fields({ replicas: nonNegative, selector: selectorOf('deployment') }),
  selected,
  fields<DeploymentSpec>({
    strategy: strategyRule,
    minReadySeconds: nonNegative,
    revisionHistoryLimit: nonNegative,
    progressDeadlineSeconds: nonNegative,
  }),
  ({ progressDeadlineSeconds: deadline, minReadySeconds = 0 }, report) => {
    if (deadline !== undefined && deadline <= minReadySeconds)
      report.invalid('progressDeadlineSeconds', deadline, 'must be greater than minReadySeconds')
  },
)

const replicaSetSpec = all<Data<V1ReplicaSetSpec>>(
  fields({ replicas: nonNegative, minReadySeconds: nonNegative, selector: selectorOf('deployment') }),
  selected,
)

/** The selector is immutable, in every kind that finds its pods by it. */
export const selectorStays = validatingChange(
  changes<ObjectOf<{ selector: LabelSelector }>>({ spec: changes({ selector: immutable('v1.LabelSelector') }) }),
)

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
  validate: validatingSpec(deploymentSpec),
  validateChange: selectorStays,
}

/** Warnings about the template of a new or changed object, and about the name of a new one. */
function ownerWarnings(object: KubeObject, old: KubeObject | undefined): readonly string[] {
  if (isSameSpec(object, old)) return []
  const { template } = object['spec'] as DeploymentSpec
  const ofName = old === undefined ? podOwnerNameWarnings(object) : []
  return [...ofName, ...templateWarnings('spec.template', template)]
}

export const replicaSetRules: KindRules = {
  warningsOf: ownerWarnings,
  dropDisabled: dropTerminating,
  validate: validatingSpec(replicaSetSpec),
  validateChange: selectorStays,
}
