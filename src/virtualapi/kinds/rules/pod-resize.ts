// Validation of the subresource `resize`: cpu and memory of a running pod may change, within its QoS class.
import { isDeepStrictEqual } from 'node:util'
import { fieldForbidden, fieldInvalid } from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import { mirrorAnnotation } from '#virtualapi/kinds/validation/pod-annotations.ts'
import type { PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'
import { qosClassOf } from './pod-qos.ts'
import type { Pod } from './pod-object.ts'

type Container = PodSpec['containers'][number]
type Resources = NonNullable<Container['resources']>
type Amounts = Readonly<Record<string, string>> | undefined

/** Validation errors of an update through the subresource `resize`. As upstream, the first ones have no path. */
export function podResizeCauses({ spec }: Pod, old: Pod): StatusCause[] {
  const { spec: before, metadata } = old
  if (hasOwnResources(before) || hasOwnResources(spec))
    return [fieldForbidden('', 'pods with pod-level resources cannot be resized')]
  if (metadata.annotations?.[mirrorAnnotation] !== undefined)
    return [fieldForbidden('', 'static pods cannot be resized')]
  if (before.os?.name === 'windows') return [fieldForbidden('', 'windows pods cannot be resized')]
  const causes: StatusCause[] = []
  if (qosClassOf(spec) !== (old.status.qosClass ?? qosClassOf(before)))
    causes.push(fieldInvalid('spec', old.status.qosClass ?? '', 'Pod QOS Class may not change as a result of resizing'))
  const running = (old.status.containerStatuses ?? []).find(({ state }) => state?.running)
  if (running !== undefined && running.resources === undefined)
    causes.push(fieldForbidden('spec', 'Pod running on node without support for resize'))
  for (const member of ['containers', 'initContainers'] as const)
    if ((spec[member] ?? []).length !== (before[member] ?? []).length)
      return [...causes, fieldForbidden(`spec.${member}`, `${member} may not be added or removed on resize`)]
  return [
    ...causes,
    ...sidecarCauses(spec.initContainers ?? [], before.initContainers ?? []),
    ...spec.containers.flatMap((container, index) =>
      removedCauses(`spec.containers[${index}].resources`, container.resources, before.containers[index]?.resources),
    ),
    ...spec.containers.flatMap((container, index) =>
      equalExceptCpuAndMemory(container, before.containers[index])
        ? []
        : [fieldForbidden('spec', 'only cpu and memory resources are mutable')],
    ),
    ...(spec.initContainers ?? []).flatMap((container, index) => initCauses(container, before.initContainers?.[index])),
  ]
}

function hasOwnResources({ resources }: PodSpec): boolean {
  return Object.keys({ ...resources?.requests, ...resources?.limits }).length > 0
}

const isSidecar = ({ restartPolicy }: Container): boolean => restartPolicy === 'Always'

function sidecarCauses(containers: readonly Container[], before: readonly Container[]): StatusCause[] {
  return containers.flatMap((container, index) =>
    isSidecar(container)
      ? removedCauses(`spec.initContainers[${index}].resources`, container.resources, before[index]?.resources)
      : [],
  )
}

function removedCauses(path: string, next: Resources | undefined, old: Resources | undefined): StatusCause[] {
  const removed = (now: Amounts, before: Amounts): boolean =>
    Object.keys(before ?? {}).some((name) => now?.[name] === undefined)
  return (['requests', 'limits'] as const)
    .filter((member) => removed(next?.[member], old?.[member]))
    .map((member) => fieldForbidden(`${path}.${member}`, `resource ${member} cannot be removed`))
}

function initCauses(container: Container, before: Container | undefined): StatusCause[] {
  if (isSidecar(container))
    return equalExceptCpuAndMemory(container, before)
      ? []
      : [fieldForbidden('spec', 'only cpu and memory resources for sidecar containers are mutable')]
  return isDeepStrictEqual(container, before)
    ? []
    : [fieldForbidden('spec', 'resources for non-sidecar init containers are immutable')]
}

/** True if the containers differ only in cpu and memory, and none of these is added where the list was absent. */
function equalExceptCpuAndMemory(next: Container, old: Container | undefined): boolean {
  if (old === undefined) return false
  const kept = (now: Amounts, before: Amounts): Amounts => {
    if (before === undefined) return undefined
    const { cpu: _c, memory: _m, ...others } = now ?? {}
    const { cpu, memory } = before
    return { ...others, ...(cpu === undefined ? {} : { cpu }), ...(memory === undefined ? {} : { memory }) }
  }
  const { resources: now, ...rest } = next
  const { resources: before, ...oldRest } = old
  return (
    isDeepStrictEqual(rest, oldRest) &&
    (['requests', 'limits'] as const).every((member) =>
      isDeepStrictEqual(kept(now?.[member], before?.[member]) ?? {}, before?.[member] ?? {}),
    ) &&
    isDeepStrictEqual(before?.claims ?? [], [])
  )
}
