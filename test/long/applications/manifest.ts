// The parts of Kubernetes objects that the applications' manifests are changed and checked by.

export interface Manifest {
  readonly apiVersion: string
  readonly kind: string
  readonly metadata: {
    readonly name: string
    readonly namespace?: string
    readonly labels?: Readonly<Record<string, string>>
    readonly annotations?: Readonly<Record<string, string>>
  }
  readonly spec?: unknown
}

export interface PodTemplate {
  metadata?: { labels?: Record<string, string> }
  spec: PodSpec
}

export interface PodSpec {
  initContainers?: Container[]
  containers: Container[]
  securityContext?: UserOfProcess
}

export interface Container {
  name: string
  image: string
  imagePullPolicy?: string
  command?: string[]
  env?: { name: string; value?: string }[]
  ports?: { name?: string; containerPort: number; protocol?: string }[]
  livenessProbe?: Probe
  readinessProbe?: Probe
  startupProbe?: Probe
  lifecycle?: Record<string, { exec?: { command: string[] } }>
  resources?: { requests?: Record<string, string | number>; limits?: Record<string, string | number> }
  restartPolicy?: string
  securityContext?: UserOfProcess
  volumeMounts?: { name: string; mountPath: string; mountPropagation?: string }[]
}

export interface UserOfProcess {
  runAsNonRoot?: boolean
  runAsUser?: number
}

export interface Probe {
  exec?: { command: string[] }
  httpGet?: { port: number | string }
  tcpSocket?: { port: number | string }
  grpc?: { port: number }
  initialDelaySeconds?: number
  periodSeconds?: number
}

export interface ServiceSpec {
  selector?: Record<string, string>
  clusterIP?: string
  ports?: { name?: string; port: number; targetPort?: number | string; protocol?: string }[]
}

/** The template of the object's pods; undefined if it has none. */
export function templateOf({ kind, spec, metadata }: Manifest): PodTemplate | undefined {
  if (kind === 'Pod') return { metadata, spec: spec as PodSpec }
  const of = kind === 'CronJob' ? (spec as { jobTemplate: { spec: unknown } }).jobTemplate.spec : spec
  return workloads.has(kind) ? (of as { template: PodTemplate }).template : undefined
}

/** The kinds that have a template. */
const workloads: ReadonlySet<string> = new Set([
  'Deployment',
  'StatefulSet',
  'DaemonSet',
  'ReplicaSet',
  'ReplicationController',
  'Job',
  'CronJob',
])

/** Containers of all kinds. */
export const containersOf = ({ initContainers = [], containers }: PodSpec): readonly Container[] => [
  ...initContainers,
  ...containers,
]

/** `KIND/NAME`, as the page and kubectl have it. */
export const nameOf = ({ kind, metadata }: Pick<Manifest, 'kind' | 'metadata'>): string => `${kind}/${metadata.name}`

/** Whether Helm runs the object before or after the chart's other objects, and then deletes it. */
export const isHook = ({ metadata }: Manifest): boolean => metadata.annotations?.['helm.sh/hook'] !== undefined
