// Containers of a pod: ordinary and init containers differ in a few things only.
import type { V1Container, V1ContainerPort, V1SecurityContext, V1Volume, V1VolumeMount } from '@kubernetes/client-node'
import {
  fieldDuplicate,
  fieldForbidden,
  fieldInvalid,
  fieldNotFound,
  fieldRequired,
} from '../../../../apimachinery/field/index.ts'
import type { StatusCause } from '../../../../apimachinery/status/index.ts'
import type { Data } from '../typed/data.ts'
import { envCauses, envFromCauses } from './env.ts'
import { handlerCauses, probeCauses } from './handlers.ts'
import { resourceCauses } from './resources.ts'
import {
  between,
  descendingPath,
  label,
  oneOf,
  portNameErrors,
  portNumber,
  protocols,
  requiredOneOf,
} from './values.ts'

export type Container = Data<V1Container>
type Volumes = ReadonlyMap<string, Data<V1Volume>>

const restartText = 'may not be set for init containers without restartPolicy=Always'
const maxId = 2 ** 31 - 1

export interface ContainerContext {
  readonly volumes: Volumes
  readonly hostNetwork: boolean
}

/** What is wrong with the containers of a pod. */
export function containersCauses(
  path: string,
  containers: readonly Container[] | null | undefined,
  context: ContainerContext,
): StatusCause[] {
  if (!containers?.length) return [fieldRequired(path)]
  const names = new Set<string>()
  return containers.flatMap((container, index) => {
    const at = `${path}[${index}]`
    const causes = commonCauses(at, container, context)
    if (names.has(container.name)) causes.push(fieldDuplicate(`${at}.name`, container.name))
    names.add(container.name)
    causes.push(...lifecycleCauses(`${at}.lifecycle`, container), ...allProbeCauses(at, container))
    return [...causes, ...hostPortCauses(at, container, context)]
  })
}

/** What is wrong with the init containers; those with restartPolicy Always are sidecars and may have probes. */
export function initContainersCauses(
  path: string,
  containers: readonly Container[] | undefined,
  regular: readonly Container[],
  context: ContainerContext,
): StatusCause[] {
  const names = new Set(regular.map(({ name }) => name))
  return (containers ?? []).flatMap((container, index) => {
    const at = `${path}[${index}]`
    const causes = commonCauses(at, container, context)
    const { name, lifecycle, livenessProbe, readinessProbe, startupProbe } = container
    if (container.restartPolicy === 'Always')
      causes.push(...lifecycleCauses(`${at}.lifecycle`, container), ...allProbeCauses(at, container))
    else {
      if (lifecycle) causes.push(fieldForbidden(`${at}.lifecycle`, restartText))
      if (livenessProbe) causes.push(fieldForbidden(`${at}.livenessProbe`, restartText))
      if (readinessProbe) causes.push(fieldForbidden(`${at}.readinessProbe`, restartText))
      if (startupProbe) causes.push(fieldForbidden(`${at}.startupProbe`, restartText))
    }
    if (name !== '' && names.has(name)) causes.push(fieldDuplicate(`${at}.name`, name))
    names.add(name)
    return [...causes, ...hostPortCauses(at, container, context)]
  })
}

function commonCauses(path: string, container: Container, { volumes }: ContainerContext): StatusCause[] {
  const { name, image, ports, env, envFrom, volumeMounts, resources, securityContext } = container
  const causes = name === '' ? [fieldRequired(`${path}.name`)] : label(`${path}.name`, name)
  if (!image) causes.push(fieldRequired(`${path}.image`))
  else if (image !== image.trim())
    causes.push(fieldInvalid(`${path}.image`, image, 'must not have leading or trailing whitespace'))
  causes.push(
    ...requiredOneOf(`${path}.terminationMessagePolicy`, container.terminationMessagePolicy, [
      'File',
      'FallbackToLogsOnError',
    ]),
    ...portsCauses(`${path}.ports`, ports),
    ...envCauses(`${path}.env`, env),
    ...envFromCauses(`${path}.envFrom`, envFrom),
    ...mountsCauses(`${path}.volumeMounts`, volumeMounts, volumes),
    ...requiredOneOf(`${path}.imagePullPolicy`, container.imagePullPolicy, ['Always', 'IfNotPresent', 'Never']),
    ...resourceCauses(`${path}.resources`, resources),
    ...securityCauses(`${path}.securityContext`, securityContext),
  )
  return causes
}

function lifecycleCauses(path: string, { lifecycle }: Container): StatusCause[] {
  return [
    ...(lifecycle?.postStart ? handlerCauses(`${path}.postStart`, lifecycle.postStart) : []),
    ...(lifecycle?.preStop ? handlerCauses(`${path}.preStop`, lifecycle.preStop) : []),
  ]
}

function allProbeCauses(path: string, { livenessProbe, readinessProbe, startupProbe }: Container): StatusCause[] {
  return [
    ...probeCauses(`${path}.livenessProbe`, livenessProbe, { mustSucceedOnce: true }),
    ...probeCauses(`${path}.readinessProbe`, readinessProbe, { mustSucceedOnce: false }),
    ...probeCauses(`${path}.startupProbe`, startupProbe, { mustSucceedOnce: true }),
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

function hostPortCauses(path: string, { ports }: Container, { hostNetwork }: ContainerContext): StatusCause[] {
  if (!hostNetwork) return []
  return (ports ?? []).flatMap(({ containerPort, hostPort = 0 }, index) =>
    hostPort === containerPort
      ? []
      : [
          fieldInvalid(
            `${path}.ports[${index}].hostPort`,
            hostPort,
            'must match `containerPort` when `hostNetwork` is true',
          ),
        ],
  )
}

function mountsCauses(
  path: string,
  mounts: readonly Data<V1VolumeMount>[] | undefined,
  volumes: Volumes,
): StatusCause[] {
  const paths = new Set<string>()
  return (mounts ?? []).flatMap(({ name, mountPath, subPath, subPathExpr, mountPropagation }, index) => {
    const at = `${path}[${index}]`
    const causes: StatusCause[] = []
    if (name === '') causes.push(fieldRequired(`${at}.name`))
    if (!volumes.has(name)) causes.push(fieldNotFound(`${at}.name`, name))
    if (mountPath === '') causes.push(fieldRequired(`${at}.mountPath`))
    if (paths.has(mountPath)) causes.push(fieldInvalid(`${at}.mountPath`, mountPath, 'must be unique'))
    paths.add(mountPath)
    // Upstream forgets the index here, and clients see it so.
    if (subPath) causes.push(...descendingPath(`${path}.subPath`, subPath))
    if (subPathExpr) {
      if (subPath)
        causes.push(fieldInvalid(`${path}.subPathExpr`, subPathExpr, 'subPathExpr and subPath are mutually exclusive'))
      causes.push(...descendingPath(`${path}.subPathExpr`, subPathExpr))
    }
    return [
      ...causes,
      ...oneOf(`${at}.mountPropagation`, mountPropagation, ['Bidirectional', 'HostToContainer', 'None']),
    ]
  })
}

function securityCauses(path: string, context: Data<V1SecurityContext> | undefined): StatusCause[] {
  if (context === undefined) return []
  const { runAsUser, runAsGroup, procMount, allowPrivilegeEscalation, privileged, capabilities, seccompProfile } =
    context
  const causes = [
    ...between(`${path}.runAsUser`, runAsUser, 0, maxId),
    ...between(`${path}.runAsGroup`, runAsGroup, 0, maxId),
    ...oneOf(`${path}.procMount`, procMount, ['Default', 'Unmasked']),
    ...seccompCauses(`${path}.seccompProfile`, seccompProfile),
  ]
  if (allowPrivilegeEscalation === false) {
    const value = context
    if (privileged === true)
      causes.push(fieldInvalid(path, value, 'cannot set `allowPrivilegeEscalation` to false and `privileged` to true'))
    if (capabilities?.add?.includes('CAP_SYS_ADMIN'))
      causes.push(
        fieldInvalid(
          path,
          value,
          'cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN',
        ),
      )
  }
  return causes
}

/** A seccomp profile names a file exactly when its type is Localhost. */
export function seccompCauses(
  path: string,
  profile: { type: string; localhostProfile?: string } | undefined,
): StatusCause[] {
  if (profile === undefined) return []
  const { type, localhostProfile } = profile
  const causes: StatusCause[] = []
  if (type === 'Localhost') {
    if (localhostProfile === undefined)
      causes.push(fieldRequired(`${path}.localhostProfile`, 'must be set when seccomp type is Localhost'))
    else causes.push(...descendingPath(`${path}.localhostProfile`, localhostProfile))
  } else if (localhostProfile !== undefined)
    causes.push(
      fieldInvalid(`${path}.localhostProfile`, localhostProfile, 'can only be set when seccomp type is Localhost'),
    )
  return [...causes, ...requiredOneOf(`${path}.type`, type, ['Localhost', 'RuntimeDefault', 'Unconfined'])]
}
