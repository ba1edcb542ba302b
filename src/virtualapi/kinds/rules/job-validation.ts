// Validation of Jobs and of the Job templates in CronJobs.
import { isDeepStrictEqual } from 'node:util'
import type { V1JobSpec } from '@kubernetes/client-node'
import {
  dns1123LabelErrors,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
  fieldTooLong,
} from '#apimachinery/field/index.ts'
import type { JsonValue, KubeObject } from '#apimachinery/meta/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { isEmptySelector, labelSelectorCauses, selects } from '#virtualapi/kinds/validation/label-selector.ts'
import { domainPath, fieldImmutable, nonNegative } from '#virtualapi/kinds/validation/values.ts'
import { templateCauses, unselectedCauses, isUsable } from '#virtualapi/kinds/validation/workload.ts'
import { failurePolicyCauses, successPolicyCauses } from './job-policies.ts'

type JobSpec = Data<V1JobSpec>

const maxManagedByBytes = 63
const maxIndexed = 100_000
const maxWithManyIndexes = 10_000
const completionModes = ['NonIndexed', 'Indexed']
const replacementPolicies = ['Failed', 'TerminatingOrFailed']

/**
 * Validates a Job: its spec, and the selector and labels generated for it. As upstream, some errors of an update are
 * repeated.
 */
export function jobCauses(object: KubeObject, old: KubeObject | undefined): StatusCause[] {
  const spec = object['spec'] as JobSpec
  const causes = selectedCauses(spec)
  return [
    ...generatedCauses(object, spec),
    ...causes,
    ...hostnameCauses(object, spec),
    ...(old === undefined ? [] : causes),
  ]
}

function selectedCauses(spec: JobSpec): StatusCause[] {
  const { selector, template } = spec
  return [
    ...jobSpecCauses('spec', spec),
    ...(selector === undefined ? [fieldRequired('spec.selector')] : labelSelectorCauses('spec.selector', selector)),
    ...(!isUsable(selector) || (selector !== undefined && isEmptySelector(selector))
      ? []
      : unselectedCauses('spec.template', template, selector)),
  ]
}

function generatedCauses({ metadata }: KubeObject, { selector, template, manualSelector }: JobSpec): StatusCause[] {
  if (manualSelector === true || selector === undefined) return []
  const { uid = '', name = '' } = metadata
  const own = template.metadata?.labels ?? {}
  const expected = {
    'controller-uid': uid,
    'job-name': name,
    'batch.kubernetes.io/controller-uid': uid,
    'batch.kubernetes.io/job-name': name,
  }
  const causes = Object.entries(expected).flatMap(([label, wanted]) => {
    const at = `spec.template.metadata.labels[${label}]`
    const detail = `must be '${wanted}'`
    if (!Object.hasOwn(own, label)) return [fieldRequired(at, detail)]
    return own[label] === wanted ? [] : [fieldInvalid(at, own, detail)]
  })
  if (!isUsable(selector) || selects(selector, expected)) return causes
  return [...causes, invalidInternal('spec.selector', 'v1.LabelSelector', selector, '`selector` not auto-generated')]
}

/** The hostname of the last pod of an Indexed Job, `NAME-INDEX`, must be a DNS label. */
function hostnameCauses({ metadata }: KubeObject, { completionMode, completions = 0 }: JobSpec): StatusCause[] {
  const { name = '' } = metadata
  const longest = `${name}-${completions - 1}`
  return completionMode === 'Indexed' && completions > 0 && dns1123LabelErrors(longest).length > 0
    ? [fieldInvalid('metadata.name', name, `will not able to create pod with invalid DNS label: ${longest}`)]
    : []
}

/** Validates the Job spec at `path`. */
export function jobSpecCauses(path: string, spec: JobSpec): StatusCause[] {
  const { managedBy, completionMode, podReplacementPolicy, podFailurePolicy } = spec
  const known = podFailurePolicy === undefined ? replacementPolicies : ['Failed']
  return [
    ...(
      ['parallelism', 'completions', 'activeDeadlineSeconds', 'backoffLimit', 'ttlSecondsAfterFinished'] as const
    ).flatMap((member) => nonNegative(`${path}.${member}`, spec[member])),
    ...nonNegative(`${path}.backoffLimitPerIndex`, spec.backoffLimitPerIndex),
    ...nonNegative(`${path}.maxFailedIndexes`, spec.maxFailedIndexes),
    ...(spec.maxFailedIndexes !== undefined && spec.backoffLimitPerIndex === undefined
      ? [fieldRequired(`${path}.backoffLimitPerIndex`, 'when maxFailedIndexes is specified')]
      : []),
    ...(managedBy === undefined ? [] : managerCauses(`${path}.managedBy`, managedBy)),
    ...(completionMode === undefined || completionModes.includes(completionMode)
      ? []
      : [fieldNotSupported(`${path}.completionMode`, completionMode, completionModes)]),
    ...(completionMode === 'Indexed' ? indexedCauses(path, spec) : []),
    ...(completionMode === undefined || completionMode === 'NonIndexed' ? plainCauses(path, spec) : []),
    ...failurePolicyCauses(`${path}.podFailurePolicy`, spec),
    ...successPolicyCauses(`${path}.successPolicy`, spec),
    ...(podReplacementPolicy === undefined || known.includes(podReplacementPolicy)
      ? []
      : [fieldNotSupported(`${path}.podReplacementPolicy`, podReplacementPolicy, known)]),
    ...templateCauses(`${path}.template`, spec.template),
    ...restartCauses(`${path}.template.spec.restartPolicy`, spec),
  ]
}

function managerCauses(path: string, managedBy: string): StatusCause[] {
  return [
    ...domainPath(path, managedBy),
    ...(Buffer.byteLength(managedBy) > maxManagedByBytes ? [fieldTooLong(path, maxManagedByBytes)] : []),
  ]
}

/** Bounds the state that is stored per index. */
function indexedCauses(path: string, spec: JobSpec): StatusCause[] {
  const { completions, parallelism = 0, maxFailedIndexes: failed, backoffLimitPerIndex } = spec
  const causes: StatusCause[] = []
  const atMost = (member: string, value: number, most: number, when: string): void => {
    if (value > most)
      causes.push(fieldInvalid(`${path}.${member}`, value, `must be less than or equal to ${most}${when}`))
  }
  if (completions === undefined) causes.push(fieldRequired(`${path}.completions`, 'when completion mode is Indexed'))
  atMost('parallelism', parallelism, maxIndexed, ' when completion mode is Indexed')
  if (completions !== undefined && failed !== undefined && failed > completions)
    causes.push(fieldInvalid(`${path}.maxFailedIndexes`, failed, 'must be less than or equal to completions'))
  atMost('maxFailedIndexes', failed ?? 0, maxIndexed, '')
  if (completions === undefined || completions <= maxIndexed || backoffLimitPerIndex === undefined) return causes
  const when = ` when completions are above ${maxIndexed} and used with backoff limit per index`
  if (failed === undefined)
    causes.push(fieldRequired(`${path}.maxFailedIndexes`, `must be specified when completions is above ${maxIndexed}`))
  atMost('parallelism', parallelism, maxWithManyIndexes, when)
  atMost('maxFailedIndexes', failed ?? 0, maxWithManyIndexes, when)
  return causes
}

function plainCauses(path: string, spec: JobSpec): StatusCause[] {
  return (['backoffLimitPerIndex', 'maxFailedIndexes'] as const).flatMap((member) => {
    const value = spec[member]
    return value === undefined ? [] : [fieldInvalid(`${path}.${member}`, value, 'requires indexed completion mode')]
  })
}

function restartCauses(path: string, { template, podFailurePolicy }: JobSpec): StatusCause[] {
  const policy = template.spec?.restartPolicy ?? 'Always'
  if (policy === 'Always' || policy === '') return [fieldRequired(path, 'valid values: "OnFailure", "Never"')]
  if (policy !== 'OnFailure' && policy !== 'Never') return [fieldNotSupported(path, policy, ['OnFailure', 'Never'])]
  return podFailurePolicy !== undefined && policy !== 'Never'
    ? [fieldInvalid(path, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    : []
}

/** The internal struct that an error prints for an immutable member; other members are printed unchanged. */
const structs: Readonly<Record<string, string>> = {
  selector: 'v1.LabelSelector',
  template: 'core.PodTemplateSpec',
  podFailurePolicy: 'batch.PodFailurePolicy',
  successPolicy: 'batch.SuccessPolicy',
}

/** Validates the immutable fields of a Job: selector, template, completion mode and policies. */
export function jobChangeCauses(object: KubeObject, old: KubeObject): StatusCause[] {
  const next = object['spec'] as JobSpec
  const before = old['spec'] as JobSpec
  // The scheduling constraints of a suspended Job that has not started are mutable (KEP-2926).
  const mayMove =
    before.suspend === true && (old['status'] as { startTime?: string } | undefined)?.startTime === undefined
  const fixed = [
    'selector',
    'template',
    'completionMode',
    'podFailurePolicy',
    'backoffLimitPerIndex',
    'managedBy',
    'successPolicy',
  ] as const
  return [
    ...completionsCauses(next, before),
    ...fixed.flatMap((member) => {
      if (isDeepStrictEqual(next[member], before[member])) return []
      if (member === 'template' && mayMove && isDeepStrictEqual(unscheduled(next), unscheduled(before))) return []
      const struct = structs[member]
      return struct === undefined
        ? [fieldInvalid(`spec.${member}`, (next[member] as JsonValue | undefined) ?? null, fieldImmutable)]
        : [invalidInternal(`spec.${member}`, struct, next[member], fieldImmutable)]
    }),
  ]
}

/** completions is mutable for Indexed Jobs only, and only together with parallelism. */
function completionsCauses(next: JobSpec, before: JobSpec): StatusCause[] {
  const { completions = null } = next
  if (completions === (before.completions ?? null)) return []
  if (next.completionMode !== 'Indexed') return [fieldInvalid('spec.completions', completions, fieldImmutable)]
  return completions === null || completions === next.parallelism
    ? []
    : [fieldInvalid('spec.completions', completions, 'can only be modified in tandem with spec.parallelism')]
}

/** The pod spec of the template without its scheduling constraints. */
function unscheduled({ template }: JobSpec): unknown {
  const {
    affinity,
    nodeSelector: _n,
    tolerations: _t,
    schedulingGates: _g,
    ...spec
  } = template.spec ?? { containers: [] }
  const { nodeAffinity: _a, ...others } = affinity ?? {}
  return { ...spec, affinity: others }
}
