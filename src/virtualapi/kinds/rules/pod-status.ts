// Validation of the status of a pod.
import type { V1ContainerStatus, V1PodStatus } from '@kubernetes/client-node'
import { fieldDuplicate, fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { invalidInternal } from '#virtualapi/kinds/resources/typed/internal-form.ts'
import { legacyIpCauses, tryIp } from '#virtualapi/kinds/validation/ip-values.ts'
import type { PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'
import { between, fieldImmutable, qualifiedName, subdomain } from '#virtualapi/kinds/validation/values.ts'
import type { Pod } from './pod-object.ts'
import { annotationChangeCauses } from './pod-update.ts'

type Status = Data<V1PodStatus>
type ContainerStatuses = readonly Data<V1ContainerStatus>[] | undefined

const kinds = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const
const ownConditions = ['PodScheduled', 'Ready', 'Initialized']
const maxId = 2 ** 31 - 1

/** Validation errors of an update through the subresource `status`. */
export function podStatusCauses(pod: Pod, old: Pod): StatusCause[] {
  const { spec, status } = pod
  const { status: before } = old
  const causes = annotationChangeCauses(pod, old)
  for (const [i, { type }] of (status.conditions ?? []).entries())
    if (!ownConditions.includes(type)) causes.push(...qualifiedName(`status.conditions[${i}].Type`, type))
  const { nominatedNodeName = '', qosClass } = status
  if (nominatedNodeName !== '' && nominatedNodeName !== before.nominatedNodeName)
    causes.push(...subdomain('status.nominatedNodeName', nominatedNodeName))
  if (before.qosClass && qosClass !== before.qosClass)
    causes.push(fieldInvalid('status.qosClass', qosClass ?? '', fieldImmutable))
  return [
    ...causes,
    ...kinds.flatMap((member) => restartCauses(member, status[member], before[member], spec)),
    ...claimCauses(status.resourceClaimStatuses, spec),
    ...addressesCauses('status.podIPs', 'core.PodIP', status.podIPs, before.podIPs),
    ...hostAddressCauses(status, before),
    ...kinds.flatMap((member) => userCauses(`status.${member}`, status[member], spec)),
  ]
}

/** A container that has terminated for good must not run again. */
function restartCauses(
  member: (typeof kinds)[number],
  statuses: ContainerStatuses,
  before: ContainerStatuses,
  { restartPolicy, initContainers }: PodSpec,
): StatusCause[] {
  const ephemeral = member === 'ephemeralContainerStatuses'
  if (before === undefined || (restartPolicy === 'Always' && !ephemeral)) return []
  const running = new Set((statuses ?? []).filter(({ state }) => !state?.terminated).map(({ name }) => name))
  const sidecars = new Set(
    (initContainers ?? []).filter((one) => one.restartPolicy === 'Always').map(({ name }) => name),
  )
  return before.flatMap(({ name, state }, index) => {
    const ended = state?.terminated
    if (ended === undefined || !running.has(name)) return []
    if (!ephemeral && restartPolicy === 'OnFailure' && ended.exitCode !== 0) return []
    if (member === 'initContainerStatuses' && sidecars.has(name)) return []
    return [fieldForbidden(`status.${member}[${index}].state`, 'may not be transitioned to non-terminated state')]
  })
}

function claimCauses(statuses: Status['resourceClaimStatuses'], { resourceClaims }: PodSpec): StatusCause[] {
  const known = new Set((resourceClaims ?? []).map(({ name }) => name))
  const seen = new Set<string>()
  return (statuses ?? []).flatMap(({ name, resourceClaimName: claim }, index) => {
    const at = `status.resourceClaimStatuses[${index}].name`
    const causes: StatusCause[] = []
    if (!known.has(name))
      causes.push(fieldInvalid(at, name, 'must match the name of an entry in `spec.resourceClaims`'))
    if (seen.has(name)) causes.push(fieldDuplicate(at, name))
    seen.add(name)
    return claim === undefined ? causes : [...causes, ...subdomain(at, claim)]
  })
}

type Addresses = readonly { readonly ip: string }[] | undefined

/** Each address must be valid, unless it is stored already; at most one per IP family. */
function addressesCauses(path: string, struct: string, addresses: Addresses, before: Addresses): StatusCause[] {
  if (addresses === undefined) return []
  const known = new Set((before ?? []).map(({ ip }) => ip))
  const causes = addresses.flatMap(({ ip }, index) => (known.has(ip) ? [] : legacyIpCauses(`${path}[${index}]`, ip)))
  if (addresses.length < 2) return causes
  const families = addresses.map(({ ip }) => tryIp(ip)?.family)
  const bad = families.indexOf(undefined)
  if (bad >= 0)
    causes.push({
      reason: 'InternalError',
      message: `Internal error: failed to check for dual stack with error:invalid IP[${bad}]: <nil>`,
      field: path,
    })
  if (bad >= 0 || addresses.length > 2 || families[0] === families[1])
    causes.push(invalidInternal(path, struct, addresses, 'may specify no more than one IP for each IP family'))
  return causes
}

function hostAddressCauses({ hostIP, hostIPs }: Status, before: Status): StatusCause[] {
  const first = hostIPs?.[0]
  if (first === undefined) return []
  return [
    ...(hostIP === first.ip ? [] : [fieldInvalid('status.hostIPs[0].ip', first.ip, 'must be equal to `hostIP`')]),
    ...addressesCauses('status.hostIPs', 'core.HostIP', hostIPs, before.hostIPs),
  ]
}

function userCauses(path: string, statuses: ContainerStatuses, { os }: PodSpec): StatusCause[] {
  return (statuses ?? []).flatMap(({ user }, index) => {
    const at = `${path}[${index}].user.linux`
    if (user?.linux === undefined) return []
    if (os?.name === 'windows') return [fieldForbidden(at, 'cannot be set for a windows pod')]
    const { uid, gid, supplementalGroups } = user.linux
    return [
      ...between(`${at}.uid`, uid, 0, maxId),
      ...between(`${at}.gid`, gid, 0, maxId),
      ...(supplementalGroups ?? []).flatMap((id, i) => between(`${at}.supplementalGroups[${i}]`, id, 0, maxId)),
    ]
  })
}
