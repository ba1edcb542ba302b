// The changes that the lab makes in manifests so that it can run them: images, and the fields that only the real
// programs need.
import { tryQuantity } from '#apimachinery/quantity/index.ts'
import {
  containersOf,
  templateOf,
  type Container,
  type Manifest,
  type PodSpec,
  type PodTemplate,
  type Probe,
  type ServiceSpec,
} from './manifest.ts'

/**
 * Images of the program in test/programs/stand-in, which serves or is done at once, as root or not; see lab-images.ts.
 */
export const standIns = ['serve', 'once'].flatMap((role) => [
  `kcp.test/stand-in:${role}`,
  `kcp.test/stand-in:${role}-nonroot`,
])
/** For init containers and Jobs that run busybox: their commands are real. */
export const busyboxImage = 'kcp.test/busybox:1'
/** Where the program is in its images. */
export const standInProgram = '/stand-in'

/** Requests of one container: one node of two cores runs all. */
const mostRequested = { cpu: '50m', memory: '32Mi' }
/** Seconds. Real programs take longer to start. */
const mostDelay = 2
const mostPeriod = 5

/**
 * The same objects, changed in these ways alone: images; the ports to listen on, in a variable; commands that lie in a
 * volume, where the real image would have put them; mounts that pass on others; requests for cpu and memory, and times
 * of probes, if they are large.
 */
export function labVersion(objects: readonly Manifest[]): Manifest[] {
  const changed = structuredClone(objects) as Manifest[]
  for (const object of changed) {
    const template = templateOf(object)
    if (template === undefined) continue
    const services = changed.filter((one) => selects(one, object, template))
    const portsOfServices = services.flatMap(({ spec }) => targetPorts(spec as ServiceSpec))
    adapt(template.spec, portsOfServices, object.kind === 'Job' || object.kind === 'CronJob')
  }
  return changed
}

/** Whether the Service `one` selects the pods of this template. */
export function selects(one: Manifest, { metadata }: Manifest, template: PodTemplate): boolean {
  if (one.kind !== 'Service' || one.metadata.namespace !== metadata.namespace) return false
  const { selector } = one.spec as ServiceSpec
  const labels = template.metadata?.labels ?? {}
  return selector !== undefined && Object.entries(selector).every(([key, value]) => labels[key] === value)
}

const targetPorts = ({ ports = [] }: ServiceSpec): number[] =>
  ports
    .filter(({ protocol = 'TCP' }) => protocol === 'TCP')
    .map(({ port, targetPort }) => targetPort ?? port)
    .filter((port) => typeof port === 'number')

function adapt(pod: PodSpec, portsOfServices: readonly number[], isJob: boolean): void {
  const declared = new Set(containersOf(pod).flatMap(({ ports = [] }) => ports.map((port) => port.containerPort)))
  const first = pod.containers[0]
  for (const container of containersOf(pod)) {
    const ends = isJob || (pod.initContainers?.includes(container) === true && container.restartPolicy !== 'Always')
    // Programs also listen on ports that they do not declare.
    const undeclared = container === first ? portsOfServices.filter((port) => !declared.has(port)) : []
    adaptContainer(container, pod, ends, undeclared)
  }
}

function adaptContainer(container: Container, pod: PodSpec, ends: boolean, undeclared: readonly number[]): void {
  const isBusybox = ends && /(^|\/)busybox([:@]|$)/.test(container.image)
  const { runAsUser, runAsNonRoot } = { ...pod.securityContext, ...container.securityContext }
  const suffix = runAsNonRoot === true && runAsUser === undefined ? '-nonroot' : ''
  container.image = isBusybox ? busyboxImage : `kcp.test/stand-in:${ends ? 'once' : 'serve'}${suffix}`
  delete container.imagePullPolicy
  const probes = [container.livenessProbe, container.readinessProbe, container.startupProbe].filter(
    (one) => one !== undefined,
  )
  if (!ends) {
    const probed = probes.flatMap(({ httpGet, tcpSocket, grpc }) => [httpGet?.port, tcpSocket?.port, grpc?.port])
    const declared = (container.ports ?? []).map(
      ({ containerPort, protocol }) => `${containerPort}${protocol === 'UDP' ? '/udp' : ''}`,
    )
    const others = [...probed, ...undeclared].filter((port) => typeof port === 'number').map(String)
    const ports = [...new Set([...declared, ...others])].join(' ')
    container.env = [...(container.env ?? []), { name: 'STAND_IN_PORTS', value: ports }]
  }
  const [program = ''] = container.command ?? []
  if ((container.volumeMounts ?? []).some(({ mountPath }) => program.startsWith(`${mountPath}/`)))
    container.command = [standInProgram, ...(container.command ?? [])]
  // Mounts of this machine are not shared.
  for (const mount of container.volumeMounts ?? []) delete mount.mountPropagation
  for (const probe of probes) shorten(probe)
  capRequests(container)
}

function shorten(probe: Probe): void {
  if (probe.initialDelaySeconds !== undefined)
    probe.initialDelaySeconds = Math.min(probe.initialDelaySeconds, mostDelay)
  probe.periodSeconds = Math.min(probe.periodSeconds ?? 10, mostPeriod)
}

function capRequests(container: Container): void {
  const { requests = {}, limits = {} } = container.resources ?? {}
  const wanted: Readonly<Record<string, unknown>> = { ...limits, ...requests }
  const tooMuch = Object.entries(mostRequested).filter(([name, most]) => nanosOf(wanted[name]) > nanosOf(most))
  if (tooMuch.length > 0)
    container.resources = { ...container.resources, requests: { ...requests, ...Object.fromEntries(tooMuch) } }
}

const nanosOf = (amount: unknown): bigint => tryQuantity(String(amount))?.nanos ?? 0n

/** The programs that containers, probes and hooks of these objects run: paths, or names to be found in PATH. */
export function programsOf(objects: readonly Manifest[]): ReadonlySet<string> {
  const specs = objects.flatMap((object) => templateOf(object)?.spec ?? [])
  return new Set(
    specs.flatMap(containersOf).flatMap((container) => {
      const { command, livenessProbe, readinessProbe, startupProbe, lifecycle = {} } = container
      const hooks = Object.values(lifecycle).map(({ exec }) => exec?.command)
      const probes = [livenessProbe, readinessProbe, startupProbe].map((probe) => probe?.exec?.command)
      return [command, ...probes, ...hooks].flatMap((words) => words?.[0] ?? [])
    }),
  )
}
