// Validation of the status of a pod.
import type { V1ContainerStatus, V1LinuxContainerUser, V1PodCondition, V1PodStatus } from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { qualifiedName, subdomain } from '#virtualapi/kinds/validation/basic-rules.ts'
import { legacyIp, tryIp } from '#virtualapi/kinds/validation/ip-values.ts'
import type { PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'
import {
  all,
  between,
  each,
  fieldImmutable,
  fields,
  unique,
  type Rule,
} from '#virtualapi/kinds/validation/vocabulary.ts'
import type { Pod } from './pod-object.ts'
import { annotationChange } from './pod-update.ts'

type Status = Data<V1PodStatus>
type ContainerStatus = Data<V1ContainerStatus>

const lists = ['containerStatuses', 'initContainerStatuses', 'ephemeralContainerStatuses'] as const
const ownConditions = ['PodScheduled', 'Ready', 'Initialized']
const id = between(0, 2 ** 31 - 1)

/** As upstream, whose path has the Go name of the member. */
const condition: Rule<Data<V1PodCondition>> = ({ type }, report) => {
  if (!ownConditions.includes(type)) report.at('Type', qualifiedName, type)
}

/** A container that has terminated for good must not run again. */
const restarts: Rule<Pod, Pod> = ({ spec, status }, report, { status: before }) => {
  const { restartPolicy, initContainers = [] } = spec
  const sidecars = new Set(initContainers.filter((one) => one.restartPolicy === 'Always').map(({ name }) => name))
  for (const member of lists) {
    const ephemeral = member === 'ephemeralContainerStatuses'
    if (before[member] === undefined || (restartPolicy === 'Always' && !ephemeral)) continue
    const running = new Set(status[member]?.filter(({ state }) => !state?.terminated).map(({ name }) => name))
    for (const [index, { name, state }] of before[member].entries()) {
      const ended = state?.terminated
      if (ended === undefined || !running.has(name)) continue
      if (!ephemeral && restartPolicy === 'OnFailure' && ended.exitCode !== 0) continue
      if (member === 'initContainerStatuses' && sidecars.has(name)) continue
      report.forbidden(`status.${member}[${index}].state`, 'may not be transitioned to non-terminated state')
    }
  }
}

type ClaimStatus = NonNullable<Status['resourceClaimStatuses']>[number]

const claimStatus = all<ClaimStatus, ReadonlySet<string>>(
  ({ name }, report, known) => {
    if (!known.has(name)) report.invalid('name', name, 'must match the name of an entry in `spec.resourceClaims`')
  },
  unique('name', ({ name }) => name),
  ({ resourceClaimName: claim }, report) => {
    if (claim !== undefined) report.at('name', subdomain, claim)
  },
)
const claimStatuses = each(claimStatus)

type Addresses = readonly { readonly ip: string }[] | undefined

/** Each address must be valid, unless it is stored already; at most one per IP family. */
function addresses(struct: string): Rule<Addresses, Addresses> {
  return (list, report, before) => {
    if (list === undefined) return
    const known = new Set(before?.map(({ ip }) => ip))
    for (const [index, { ip }] of list.entries()) if (!known.has(ip)) report.at(index, legacyIp, ip)
    if (list.length < 2) return
    const families = list.map(({ ip }) => tryIp(ip)?.family)
    const bad = families.indexOf(undefined)
    const message = `Internal error: failed to check for dual stack with error:invalid IP[${bad}]: <nil>`
    if (bad >= 0) report.add({ reason: 'InternalError', message, field: report.path() })
    if (bad >= 0 || list.length > 2 || families[0] === families[1])
      report.invalidStruct('', struct, list, 'may specify no more than one IP for each IP family')
  }
}
const podAddresses = addresses('core.PodIP')
const hostAddresses = addresses('core.HostIP')

const linuxUser = fields<Data<V1LinuxContainerUser>>({ uid: id, gid: id, supplementalGroups: each(id) })
const user = fields<ContainerStatus, PodSpec>({
  user: (given, report, { os }) => {
    if (given?.linux === undefined) return
    if (os?.name === 'windows') report.forbidden('linux', 'cannot be set for a windows pod')
    else report.at('linux', linuxUser, given.linux)
  },
})
const users = fields<Status, PodSpec>({
  containerStatuses: each(user),
  initContainerStatuses: each(user),
  ephemeralContainerStatuses: each(user),
})

const ownMembers = fields<Status, Status>({
  conditions: each(condition),
  nominatedNodeName: (name, report, before) => {
    if (name && name !== before.nominatedNodeName) report.check(subdomain, name)
  },
  qosClass: (qosClass = '', report, before) => {
    if (before.qosClass && qosClass !== before.qosClass) report.invalid('', qosClass, fieldImmutable)
  },
})

/** An update through the subresource `status`. */
export const podStatus = all<Pod, Pod>(
  annotationChange,
  ({ status }, report, old) => report.at('status', ownMembers, status, old.status),
  restarts,
  ({ status, spec }, report, { status: before }) => {
    const known = new Set(spec.resourceClaims?.map(({ name }) => name))
    report.at('status.resourceClaimStatuses', claimStatuses, status.resourceClaimStatuses, known)
    report.at('status.podIPs', podAddresses, status.podIPs, before.podIPs)
    const { hostIP, hostIPs } = status
    const first = hostIPs?.[0]?.ip
    if (first !== undefined && hostIP !== first)
      report.invalid('status.hostIPs[0].ip', first, 'must be equal to `hostIP`')
    if (first !== undefined) report.at('status.hostIPs', hostAddresses, hostIPs, before.hostIPs)
    report.at('status', users, status, spec)
  },
)
