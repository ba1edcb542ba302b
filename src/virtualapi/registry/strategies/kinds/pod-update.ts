// Of the spec of a pod that exists, little may change.
import { isDeepStrictEqual } from 'node:util'
import { fieldForbidden, fieldInvalid } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { PodSpec } from '../validation/pod-spec.ts'
import { between } from '../validation/values.ts'

const updatable =
  '`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was previously negative)'

/** Complaints about the change of a pod's spec. */
export function podChangeCauses(next: PodSpec, old: PodSpec): StatusCause[] {
  for (const member of ['containers', 'initContainers'] as const)
    if ((next[member] ?? []).length !== (old[member] ?? []).length)
      return [fieldForbidden(`spec.${member}`, 'pod updates may not add or remove containers')]
  const causes = [...imageCauses(next), ...deadlineCauses(next, old), ...additionCauses(next, old)]
  const comparable = structuredClone(next)
  for (const member of ['containers', 'initContainers'] as const)
    for (const [index, container] of (comparable[member] ?? []).entries()) {
      const image = old[member]?.[index]?.image
      if (image !== undefined) container.image = image
    }
  for (const member of ['activeDeadlineSeconds', 'tolerations', 'schedulingGates'] as const) {
    Reflect.deleteProperty(comparable, member)
    if (old[member] !== undefined) Object.assign(comparable, { [member]: old[member] })
  }
  if ((old.terminationGracePeriodSeconds ?? 0) < 0 && comparable.terminationGracePeriodSeconds === 1)
    Object.assign(comparable, { terminationGracePeriodSeconds: old.terminationGracePeriodSeconds })
  if ((old.schedulingGates?.length ?? 0) > 0) keepGatedChanges(comparable, old)
  if (!isDeepStrictEqual(comparable, old))
    causes.push(fieldForbidden('spec', `pod updates may not change fields other than ${updatable}`))
  return causes
}

function imageCauses(next: PodSpec): StatusCause[] {
  return next.containers.flatMap(({ image }, index) =>
    image
      ? []
      : [{ reason: 'FieldValueRequired', message: 'Required value', field: `spec.containers[${index}].image` }],
  )
}

function deadlineCauses(next: PodSpec, old: PodSpec): StatusCause[] {
  const path = 'spec.activeDeadlineSeconds'
  const { activeDeadlineSeconds: now } = next
  const before = old.activeDeadlineSeconds
  if (now === undefined)
    return before === undefined
      ? []
      : [fieldInvalid(path, null, 'must not update from a positive integer to nil value')]
  const wrong = between(path, now, 0, 2 ** 31 - 1)
  if (wrong.length > 0 || before === undefined || now <= before) return wrong
  return [fieldInvalid(path, now, 'must be less than or equal to previous value')]
}

function additionCauses(next: PodSpec, old: PodSpec): StatusCause[] {
  const tolerations = next.tolerations ?? []
  const kept = (old.tolerations ?? []).every((before) =>
    tolerations.some((now) => isDeepStrictEqual({ ...now, tolerationSeconds: 0 }, { ...before, tolerationSeconds: 0 })),
  )
  const gates = new Set((old.schedulingGates ?? []).map(({ name }) => name))
  const added = (next.schedulingGates ?? []).filter(({ name }) => !gates.has(name))
  return [
    ...(kept
      ? []
      : [fieldForbidden('spec.tolerations', 'existing toleration can not be modified except its tolerationSeconds')]),
    ...added.map(({ name }) =>
      fieldForbidden(`spec.schedulingGates`, `only deletion is allowed, but found new scheduling gate '${name}'`),
    ),
  ]
}

/** Who still gates a pod may narrow where it will run. */
function keepGatedChanges(comparable: PodSpec, old: PodSpec): void {
  const before = Object.entries(old.nodeSelector ?? {})
  if (before.every(([key, value]) => comparable.nodeSelector?.[key] === value)) {
    if (old.nodeSelector === undefined) delete comparable.nodeSelector
    else comparable.nodeSelector = old.nodeSelector
  }
}
