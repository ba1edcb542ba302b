// What the subresources of a pod may write: its status, its ephemeral containers.
import { isDeepStrictEqual } from 'node:util'
import type { V1PodStatus } from '@kubernetes/client-node'
import { fieldForbidden, fieldInvalid } from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import type { PodSpec } from '../validation/pod-spec.ts'
import { fieldImmutable, qualifiedName, subdomain } from '../validation/values.ts'

interface PodParts {
  readonly spec: PodSpec
  readonly status: Data<V1PodStatus>
}

/** Complaints about what came through a subresource. */
export function podPartCauses(next: PodParts, old: PodParts, subresource: string): StatusCause[] {
  if (subresource === 'status') return statusCauses(next, old)
  return subresource === 'ephemeralcontainers' ? ephemeralCauses(next.spec, old.spec) : []
}

function statusCauses({ spec, status }: PodParts, { status: before }: PodParts): StatusCause[] {
  const causes: StatusCause[] = []
  const { nominatedNodeName = '', qosClass } = status
  if (nominatedNodeName !== '' && nominatedNodeName !== before.nominatedNodeName)
    causes.push(...subdomain('status.nominatedNodeName', nominatedNodeName))
  if (before.qosClass && qosClass !== before.qosClass)
    causes.push(fieldInvalid('status.qosClass', qosClass ?? '', fieldImmutable))
  for (const [i, { type }] of (status.conditions ?? []).entries())
    causes.push(...qualifiedName(`status.conditions[${i}].Type`, type))
  for (const member of ['containerStatuses', 'initContainerStatuses'] as const)
    causes.push(...restartCauses(member, status[member] ?? [], before[member] ?? [], spec))
  return causes
}

/** A container that ended for good does not run again. */
function restartCauses(
  member: string,
  statuses: NonNullable<Data<V1PodStatus>['containerStatuses']>,
  before: NonNullable<Data<V1PodStatus>['containerStatuses']>,
  { restartPolicy }: PodSpec,
): StatusCause[] {
  if (restartPolicy === 'Always') return []
  return statuses.flatMap(({ name, state }, i) => {
    const ended = before.find((one) => one.name === name)?.state?.terminated
    if (ended === undefined || state?.terminated !== undefined) return []
    if (restartPolicy === 'OnFailure' && ended.exitCode !== 0) return []
    return [fieldForbidden(`status.${member}[${i}].state`, 'may not be transitioned to non-terminated state')]
  })
}

function ephemeralCauses(
  { ephemeralContainers: next = [] }: PodSpec,
  { ephemeralContainers: old = [] }: PodSpec,
): StatusCause[] {
  const path = 'spec.ephemeralContainers'
  return old.flatMap((before) => {
    const now = next.find(({ name }) => name === before.name)
    if (now === undefined)
      return [fieldForbidden(path, `existing ephemeral containers ${JSON.stringify(before.name)} may not be removed\n`)]
    return isDeepStrictEqual(now, before)
      ? []
      : [fieldForbidden(path, `existing ephemeral containers ${JSON.stringify(before.name)} may not be changed\n`)]
  })
}
