// Validation of the subresource `resize`: cpu and memory of a running pod may change, within its QoS class.
import { isDeepStrictEqual } from 'node:util'
import { mirrorAnnotation } from '#virtualapi/kinds/validation/pod-annotations.ts'
import type { PodSpec } from '#virtualapi/kinds/validation/pod-spec.ts'
import type { Rule } from '#virtualapi/kinds/validation/vocabulary.ts'
import { qosClassOf } from './pod-qos.ts'
import type { Pod } from './pod-object.ts'

type Container = PodSpec['containers'][number]
type Resources = NonNullable<Container['resources']>
type Amounts = Readonly<Record<string, string>> | undefined

/** An update through the subresource `resize`. As upstream, the first errors have no path. */
export const podResize: Rule<Pod, Pod> = ({ spec }, report, { spec: before, metadata, status }) => {
  if (hasOwnResources(before) || hasOwnResources(spec)) {
    report.forbidden('', 'pods with pod-level resources cannot be resized')
    return
  }
  if (metadata.annotations?.[mirrorAnnotation] !== undefined) {
    report.forbidden('', 'static pods cannot be resized')
    return
  }
  if (before.os?.name === 'windows') {
    report.forbidden('', 'windows pods cannot be resized')
    return
  }
  const { qosClass, containerStatuses } = status
  if (qosClassOf(spec) !== (qosClass ?? qosClassOf(before)))
    report.invalid('spec', qosClass ?? '', 'Pod QOS Class may not change as a result of resizing')
  const running = containerStatuses?.find(({ state }) => state?.running)
  if (running !== undefined && running.resources === undefined)
    report.forbidden('spec', 'Pod running on node without support for resize')
  for (const member of ['containers', 'initContainers'] as const)
    if ((spec[member] ?? []).length !== (before[member] ?? []).length) {
      report.forbidden(`spec.${member}`, `${member} may not be added or removed on resize`)
      return
    }
  const { containers, initContainers = [] } = spec
  for (const [index, { restartPolicy, resources }] of initContainers.entries())
    if (restartPolicy === 'Always')
      report.at(`spec.initContainers[${index}].resources`, kept, resources, before.initContainers?.[index]?.resources)
  for (const [index, { resources }] of containers.entries())
    report.at(`spec.containers[${index}].resources`, kept, resources, before.containers[index]?.resources)
  for (const [index, container] of containers.entries())
    if (!equalExceptCpuAndMemory(container, before.containers[index]))
      report.forbidden('spec', 'only cpu and memory resources are mutable')
  for (const [index, container] of initContainers.entries()) {
    const old = before.initContainers?.[index]
    if (container.restartPolicy !== 'Always') {
      if (!isDeepStrictEqual(container, old))
        report.forbidden('spec', 'resources for non-sidecar init containers are immutable')
    } else if (!equalExceptCpuAndMemory(container, old))
      report.forbidden('spec', 'only cpu and memory resources for sidecar containers are mutable')
  }
}

function hasOwnResources({ resources }: PodSpec): boolean {
  return Object.keys({ ...resources?.requests, ...resources?.limits }).length > 0
}

/** Resources of which no request and no limit is removed. */
const kept: Rule<Resources | undefined, Resources | undefined> = (next, report, old) => {
  for (const member of ['requests', 'limits'] as const)
    if (Object.keys(old?.[member] ?? {}).some((name) => next?.[member]?.[name] === undefined))
      report.forbidden(member, `resource ${member} cannot be removed`)
}

/** True if the containers differ only in cpu and memory, and none of these is added where the list was absent. */
function equalExceptCpuAndMemory(next: Container, old: Container | undefined): boolean {
  if (old === undefined) return false
  const mixed = (now: Amounts, before: Amounts): Amounts => {
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
      isDeepStrictEqual(mixed(now?.[member], before?.[member]) ?? {}, before?.[member] ?? {}),
    ) &&
    isDeepStrictEqual(before?.claims ?? [], [])
  )
}
