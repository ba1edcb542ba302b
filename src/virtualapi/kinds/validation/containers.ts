// Validation of the containers and init containers of a pod.
import type { V1Container, V1ContainerPort, V1ContainerResizePolicy } from '@kubernetes/client-node'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotSupported,
  fieldRequired,
} from '#apimachinery/field/index.ts'
import type { StatusCause } from '#apimachinery/status/index.ts'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { envCauses, envFromCauses } from './env.ts'
import { handlerCauses, probeCauses } from './handlers.ts'
import { containerResourceCauses } from './resource-names.ts'
import { resourceCauses } from './resources.ts'
import { containerSecurityCauses } from './security.ts'
import { label, portNameErrors, portNumber, protocols, requiredOneOf } from './values.ts'
import { mountCauses } from './volume-mounts.ts'
import type { Volume } from './volumes.ts'

export type Container = Data<V1Container>

/** The facts of a pod that the validation of its containers needs. */
export interface ContainerContext {
  readonly volumes: ReadonlyMap<string, Volume>
  /** Names of the pod's resource claims. */
  readonly claims: ReadonlySet<string>
  readonly hostUsers: boolean
  readonly restartPolicy: string | undefined
  readonly graceSeconds: number | undefined
}

const restartText = 'may not be set for init containers without restartPolicy=Always'
const resizable = ['cpu', 'memory']
const resizePolicies = ['NotRequired', 'RestartContainer']

/** Validation errors of the containers of a pod. */
export function containersCauses(
  path: string,
  containers: readonly Container[] | null | undefined,
  context: ContainerContext,
): StatusCause[] {
  if (!containers?.length) return [fieldRequired(path)]
  const names = new Set<string>()
  const ports = new Set<string>()
  const each = containers.flatMap((container, index) => {
    const at = `${path}[${index}]`
    const causes = commonCauses(at, container, context)
    if (names.has(container.name)) causes.push(fieldDuplicate(`${at}.name`, container.name))
    names.add(container.name)
    return [...causes, ...probesAndHooksCauses(at, container, context)]
  })
  return [...each, ...containers.flatMap((container, index) => hostPortCauses(`${path}[${index}]`, container, ports))]
}

/** Validation errors of the init containers. Those with restartPolicy Always are sidecars and may have probes. */
export function initContainersCauses(
  path: string,
  containers: readonly Container[] | undefined,
  regular: readonly Container[],
  context: ContainerContext,
): StatusCause[] {
  const names = new Set(regular.map(({ name }) => name))
  return (containers ?? []).flatMap((container, index) => {
    const at = `${path}[${index}]`
    const { name } = container
    const causes = commonCauses(at, container, context)
    if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
    else if (name !== '') names.add(name)
    // Init containers run one at a time, so host ports only conflict within one. Upstream's path has index 0 for each.
    causes.push(...hostPortCauses(`${path}[0]`, container, new Set()))
    if (container.restartPolicy === 'Always') return [...causes, ...probesAndHooksCauses(at, container, context)]
    for (const member of ['lifecycle', 'livenessProbe', 'readinessProbe', 'startupProbe'] as const)
      if (container[member] !== undefined) causes.push(fieldForbidden(`${at}.${member}`, restartText))
    return causes
  })
}

/** Validation errors that apply to every kind of container. */
export function commonCauses(path: string, container: Container, context: ContainerContext): StatusCause[] {
  const { name, image, ports, env, envFrom } = container
  return [
    ...(name === '' ? [fieldRequired(`${path}.name`)] : label(`${path}.name`, name)),
    ...(image ? [] : [fieldRequired(`${path}.image`)]),
    ...requiredOneOf(`${path}.terminationMessagePolicy`, container.terminationMessagePolicy, [
      'File',
      'FallbackToLogsOnError',
    ]),
    ...portsCauses(`${path}.ports`, ports),
    ...envCauses(`${path}.env`, env),
    ...envFromCauses(`${path}.envFrom`, envFrom),
    ...mountCauses(path, container, context.volumes),
    ...requiredOneOf(`${path}.imagePullPolicy`, container.imagePullPolicy, ['Always', 'IfNotPresent', 'Never']),
    ...resourceCauses(`${path}.resources`, container.resources, containerResourceCauses, context.claims),
    ...resizeCauses(`${path}.resizePolicy`, container.resizePolicy, context.restartPolicy),
    ...containerSecurityCauses(`${path}.securityContext`, container.securityContext, context.hostUsers),
  ]
}

/** Whitespace around an image is an error in pods only; templates have always accepted it. */
export function imageCauses(path: string, containers: readonly { image?: string }[] | null | undefined): StatusCause[] {
  return (containers ?? []).flatMap(({ image = '' }, index) =>
    image.trim() === image
      ? []
      : [fieldInvalid(`${path}[${index}].image`, image, 'must not have leading or trailing whitespace')],
  )
}

function probesAndHooksCauses(path: string, container: Container, { graceSeconds }: ContainerContext): StatusCause[] {
  const { lifecycle, livenessProbe, readinessProbe, startupProbe } = container
  const at = `${path}.lifecycle`
  return [
    ...(lifecycle?.postStart ? handlerCauses(`${at}.postStart`, lifecycle.postStart, graceSeconds) : []),
    ...(lifecycle?.preStop ? handlerCauses(`${at}.preStop`, lifecycle.preStop, graceSeconds) : []),
    ...probeCauses(`${path}.livenessProbe`, livenessProbe, { of: 'life' }),
    ...probeCauses(`${path}.readinessProbe`, readinessProbe, { of: 'readiness' }),
    ...probeCauses(`${path}.startupProbe`, startupProbe, { of: 'life' }),
  ]
}

function portsCauses(path: string, ports: readonly Data<V1ContainerPort>[] | undefined): StatusCause[] {
  const names = new Set<string>()
  return (ports ?? []).flatMap(({ name, containerPort, hostPort, protocol }, index) => {
    const at = `${path}[${index}]`
    const causes: StatusCause[] = []
    if (name) {
      const wrong = portNameErrors(name)
      if (wrong.length > 0) causes.push(...wrong.map((text) => fieldInvalid(`${at}.name`, name, text)))
      else if (names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
      names.add(name)
    }
    if (containerPort === 0) causes.push(fieldRequired(`${at}.containerPort`))
    else causes.push(...portNumber(`${at}.containerPort`, containerPort))
    if (hostPort) causes.push(...portNumber(`${at}.hostPort`, hostPort))
    return [...causes, ...requiredOneOf(`${at}.protocol`, protocol, protocols)]
  })
}

/** Each host port may be used once in a pod; adds to `taken`. */
function hostPortCauses(path: string, { ports }: Container, taken: Set<string>): StatusCause[] {
  return (ports ?? []).flatMap(({ protocol = '', hostIP = '', hostPort }, index) => {
    if (!hostPort) return []
    const key = `${protocol}/${hostIP}/${hostPort}`
    if (taken.has(key)) return [fieldDuplicate(`${path}.ports[${index}].hostPort`, key)]
    taken.add(key)
    return []
  })
}

/** Validates resizePolicy: what happens to a container whose resources change while it runs. */
function resizeCauses(
  path: string,
  policies: readonly Data<V1ContainerResizePolicy>[] | undefined,
  ofPod: string | undefined,
): StatusCause[] {
  const seen = new Set<string>()
  return (policies ?? []).flatMap(({ resourceName, restartPolicy }, index) => {
    const causes: StatusCause[] = []
    if (seen.has(resourceName)) causes.push(fieldDuplicate(`${path}[${index}]`, resourceName))
    seen.add(resourceName)
    if (resourceName === '') causes.push(fieldRequired(path))
    else if (!resizable.includes(resourceName)) causes.push(fieldNotSupported(path, resourceName, resizable))
    if (restartPolicy === '') causes.push(fieldRequired(path))
    else if (!resizePolicies.includes(restartPolicy))
      causes.push(fieldNotSupported(path, restartPolicy, resizePolicies))
    if (ofPod === 'Never' && restartPolicy !== 'NotRequired')
      causes.push(fieldInvalid(path, restartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'"))
    return causes
  })
}
