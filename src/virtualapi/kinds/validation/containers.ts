// Validation of the containers of a pod: regular, init and ephemeral containers.
import type {
  V1Container,
  V1ContainerPort,
  V1ContainerResizePolicy,
  V1EphemeralContainer,
  V1Lifecycle,
  V1VolumeMount,
} from '@kubernetes/client-node'
import type { Data } from '#virtualapi/kinds/resources/typed/data.ts'
import { label, portNumber, portNameErrors, protocols } from './basic-rules.ts'
import { envFrom, variable } from './env.ts'
import { handler, lifeProbe, readinessProbe } from './handlers.ts'
import { containerResource } from './resource-names.ts'
import { resourceRequirements } from './resources.ts'
import { containerSecurity } from './security.ts'
import {
  all,
  each,
  fields,
  forbidden,
  given,
  must,
  nonEmpty,
  oneOf,
  optional,
  required,
  unique,
  type Report,
  type Rule,
} from './vocabulary.ts'
import { volumeUses } from './volume-mounts.ts'
import type { Volume } from './volumes.ts'

export type Container = Data<V1Container>
type Ephemeral = Data<V1EphemeralContainer>
type Common = Container & Ephemeral

/** The facts of a pod that the validation of its containers needs. */
export interface ContainerContext {
  readonly volumes: ReadonlyMap<string, Volume>
  /** Names of the pod's resource claims. */
  readonly claims: ReadonlySet<string>
  readonly hostUsers: boolean
  readonly restartPolicy: string | undefined
  readonly graceSeconds: number | undefined
}

const port: Rule<Data<V1ContainerPort>> = ({ name, containerPort, hostPort, protocol }, report) => {
  if (name) {
    const wrong = portNameErrors(name)
    const repeated = report.isRepeated(port, name)
    if (wrong.length > 0) report.invalidFor('name', name, wrong)
    else if (repeated) report.duplicate('name', name)
  }
  if (containerPort === 0) report.required('containerPort')
  else report.at('containerPort', portNumber, containerPort)
  if (hostPort) report.at('hostPort', portNumber, hostPort)
  report.at('protocol', knownProtocol, protocol)
}
const knownProtocol = required(oneOf(protocols))

/**
 * The rules of a resize policy: how a container is treated whose resources change while it runs. As upstream, paths
 * have no index.
 */
const resizePolicy = all<Data<V1ContainerResizePolicy>, ContainerContext>(
  unique('', ({ resourceName }) => resourceName),
  ({ resourceName, restartPolicy }, report, { restartPolicy: ofPod }) => {
    report.at('..', resizable, resourceName)
    report.at('..', resizeRestart, restartPolicy)
    if (ofPod === 'Never' && restartPolicy !== 'NotRequired')
      report.invalid('..', restartPolicy, "must be 'NotRequired' when `restartPolicy` is 'Never'")
  },
)
const resizable = required(oneOf(['cpu', 'memory']))
const resizeRestart = required(oneOf(['NotRequired', 'RestartContainer']))
const requirements = resourceRequirements(containerResource)

/** The rules of every kind of container. */
const common = all<Common, ContainerContext>(
  fields<Common>({
    name: required(label),
    image: nonEmpty(),
    terminationMessagePolicy: required(oneOf(['File', 'FallbackToLogsOnError'])),
    ports: each(port),
    env: each(variable),
    envFrom: each(envFrom),
  }),
  volumeUses,
  fields<Common, ContainerContext>({
    imagePullPolicy: required(oneOf(['Always', 'IfNotPresent', 'Never'])),
    resources: (resources, report, { claims }) => requirements(resources, report, claims),
    resizePolicy: each(resizePolicy),
    securityContext: optional(containerSecurity),
  }),
)

const hook = optional<Parameters<typeof handler>[0], ContainerContext>((one, report, { graceSeconds }) =>
  handler(one, report, graceSeconds),
)
const probesAndHooks = fields<Container, ContainerContext>({
  lifecycle: optional(fields<Data<V1Lifecycle>, ContainerContext>({ postStart: hook, preStop: hook })),
  livenessProbe: optional(lifeProbe),
  readinessProbe: optional(readinessProbe),
  startupProbe: optional(lifeProbe),
})

const regular = all<Container, ContainerContext>(
  common,
  unique('name', ({ name }) => name),
  probesAndHooks,
)
const regularList = required(each(regular))

/** Validates the containers of a pod. */
export function checkContainers(list: readonly Container[] | null, report: Report, context: ContainerContext): void {
  report.at('containers', regularList, list, context)
  const taken = new Set<string>()
  for (const [index, { ports }] of (list ?? []).entries())
    checkHostPorts(ports, `containers[${index}].ports`, taken, report)
}

/** Reports host ports that occur twice in a pod. Adds host ports to `taken`. */
function checkHostPorts(ports: Container['ports'], place: string, taken: Set<string>, report: Report): void {
  if (ports)
    for (const [index, { protocol = '', hostIP = '', hostPort }] of ports.entries()) {
      if (!hostPort) continue
      const key = `${protocol}/${hostIP}/${hostPort}`
      if (taken.has(key)) report.duplicate(`${place}[${index}].hostPort`, key)
      taken.add(key)
    }
}

interface InitContext extends ContainerContext {
  readonly names: Set<string>
}

const notForInit = forbidden('may not be set for init containers without restartPolicy=Always')

/** Init containers with restartPolicy Always are sidecars and may have probes. */
const initContainer: Rule<Container, InitContext> = (container, report, context) => {
  const { name, ports, restartPolicy } = container
  common(container, report, context)
  if (context.names.has(name)) report.duplicate('name', name)
  else if (name !== '') context.names.add(name)
  // Init containers run one at a time, so host ports conflict only within one container. Upstream's path has index 0
  // for every container.
  checkHostPorts(ports, '../[0].ports', new Set(), report)
  if (restartPolicy === 'Always') probesAndHooks(container, report, context)
  else report.check(withoutProbes, container)
}
const withoutProbes = fields<Container>({
  lifecycle: notForInit,
  livenessProbe: notForInit,
  readinessProbe: notForInit,
  startupProbe: notForInit,
})
export const initContainers = each(initContainer)

/** Whitespace around an image is an error in pods only; templates have always accepted it. */
export const imagesOfPod = each(
  fields<{ image?: string }>({
    image: must((image) => image.trim() === image, 'must not have leading or trailing whitespace'),
  }),
)

interface EphemeralContext extends InitContext {
  /** Names of the other containers. */
  readonly targets: ReadonlySet<string>
}

const notForEphemeral = forbidden('cannot be set for an Ephemeral Container')
/** Reports a value that is not an empty object. Decoding always sets resources, possibly to an empty object. */
const notSet: Rule<object | undefined> = (value, report) => {
  if (value !== undefined && Object.keys(value).length > 0) report.check(notForEphemeral, value)
}

const ephemeralContainer = all<Ephemeral, EphemeralContext>(
  (container, report, context) => {
    const { name, targetContainerName: target } = container
    common(container, report, context)
    if (context.names.has(name)) report.duplicate('name', name)
    context.names.add(name)
    if (target && !context.targets.has(target)) report.notFound('targetContainerName', target)
  },
  fields<Ephemeral>({
    ports: notSet,
    resources: notSet,
    resizePolicy: notSet,
    livenessProbe: notSet,
    readinessProbe: notSet,
    startupProbe: notSet,
    lifecycle: notSet,
    volumeMounts: each(
      fields<Data<V1VolumeMount>>({ subPath: given(notForEphemeral), subPathExpr: given(notForEphemeral) }),
    ),
  }),
)

const ephemeralContainers = each(ephemeralContainer)

/** Validates ephemeral containers, which are added to a running pod for debugging. `others`: all other containers. */
export function checkEphemeralContainers(
  list: readonly Ephemeral[] | undefined,
  others: readonly Container[],
  report: Report,
  context: ContainerContext,
): void {
  if (!list?.length) return
  const targets = new Set(others.map(({ name }) => name))
  report.at('ephemeralContainers', ephemeralContainers, list, { ...context, targets, names: new Set(targets) })
  report.at('ephemeralContainers', imagesOfPod, list)
}
