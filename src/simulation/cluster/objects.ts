// The kinds that the simulated controllers read and write: the fields that they use. Objects of caches never change.
import type { GroupVersionResource, KubeObject, ObjectMeta } from '#apimachinery/meta/index.ts'
import type { LabelSelectorSource } from '#apimachinery/selector/index.ts'

export type Quantities = Readonly<Record<string, string>>
export type IntOrPercent = number | string

export interface Condition {
  readonly type: string
  readonly status: 'True' | 'False' | 'Unknown'
  readonly reason?: string
  readonly message?: string
  readonly lastTransitionTime?: string
  readonly lastUpdateTime?: string
  readonly lastProbeTime?: string | null
  readonly lastHeartbeatTime?: string
  readonly observedGeneration?: number
}

export interface KeyRef {
  readonly name?: string
  readonly key?: string
  readonly optional?: boolean
}

export interface EnvVar {
  readonly name: string
  readonly value?: string
  readonly valueFrom?: {
    readonly configMapKeyRef?: KeyRef
    readonly secretKeyRef?: KeyRef
    readonly fieldRef?: { readonly fieldPath: string }
  }
}

export interface Probe {
  readonly initialDelaySeconds?: number
}

export interface Container {
  readonly name: string
  readonly image?: string
  readonly command?: readonly string[]
  readonly args?: readonly string[]
  readonly env?: readonly EnvVar[]
  readonly envFrom?: readonly {
    readonly configMapRef?: KeyRef
    readonly secretRef?: KeyRef
    readonly prefix?: string
  }[]
  readonly ports?: readonly { readonly name?: string; readonly containerPort: number; readonly protocol?: string }[]
  readonly resources?: { readonly requests?: Quantities; readonly limits?: Quantities }
  readonly restartPolicy?: string
  readonly readinessProbe?: Probe
  readonly startupProbe?: Probe
  readonly lifecycle?: { readonly preStop?: { readonly sleep?: { readonly seconds: number } } }
  readonly volumeMounts?: readonly { readonly name: string; readonly mountPath: string; readonly subPath?: string }[]
}

export interface Volume {
  readonly name: string
  readonly configMap?: KeyRef & { readonly items?: readonly { readonly key: string; readonly path: string }[] }
  readonly secret?: {
    readonly secretName?: string
    readonly optional?: boolean
    readonly items?: readonly { readonly key: string; readonly path: string }[]
  }
  readonly persistentVolumeClaim?: { readonly claimName: string }
  readonly ephemeral?: object
}

export interface NodeSelectorTerm {
  readonly matchExpressions?: readonly {
    readonly key: string
    readonly operator: string
    readonly values?: readonly string[]
  }[]
  readonly matchFields?: NodeSelectorTerm['matchExpressions']
}

export interface PodAffinityTerm {
  readonly labelSelector?: LabelSelectorSource
  readonly topologyKey: string
  readonly namespaces?: readonly string[]
}

export interface Toleration {
  readonly key?: string
  readonly operator?: string
  readonly value?: string
  readonly effect?: string
}

export interface PodSpec {
  readonly nodeName?: string
  readonly schedulerName?: string
  readonly hostname?: string
  readonly subdomain?: string
  readonly containers: readonly Container[]
  readonly initContainers?: readonly Container[]
  readonly volumes?: readonly Volume[]
  readonly restartPolicy?: string
  readonly terminationGracePeriodSeconds?: number
  readonly activeDeadlineSeconds?: number
  readonly serviceAccountName?: string
  readonly nodeSelector?: Readonly<Record<string, string>>
  readonly tolerations?: readonly Toleration[]
  readonly schedulingGates?: readonly object[]
  readonly hostNetwork?: boolean
  readonly affinity?: {
    readonly nodeAffinity?: {
      readonly requiredDuringSchedulingIgnoredDuringExecution?: {
        readonly nodeSelectorTerms: readonly NodeSelectorTerm[]
      }
    }
    readonly podAffinity?: { readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[] }
    readonly podAntiAffinity?: { readonly requiredDuringSchedulingIgnoredDuringExecution?: readonly PodAffinityTerm[] }
  }
}

export interface ContainerState {
  readonly waiting?: { readonly reason: string; readonly message?: string }
  readonly running?: { readonly startedAt: string }
  readonly terminated?: {
    readonly exitCode: number
    readonly reason: string
    readonly startedAt?: string
    readonly finishedAt?: string
    readonly containerID?: string
  }
}

export interface ContainerStatus {
  readonly name: string
  readonly image: string
  readonly imageID: string
  readonly containerID?: string
  readonly ready: boolean
  readonly started?: boolean
  readonly restartCount: number
  readonly state: ContainerState
  readonly lastState: ContainerState
}

export interface PodStatus {
  readonly phase?: string
  readonly reason?: string
  readonly message?: string
  readonly podIP?: string
  readonly podIPs?: readonly { readonly ip: string }[]
  readonly hostIP?: string
  readonly hostIPs?: readonly { readonly ip: string }[]
  readonly startTime?: string
  readonly qosClass?: string
  readonly conditions?: readonly Condition[]
  readonly containerStatuses?: readonly ContainerStatus[]
  readonly initContainerStatuses?: readonly ContainerStatus[]
}

export interface Pod extends KubeObject {
  readonly spec: PodSpec
  readonly status?: PodStatus
}

export interface PodTemplate {
  readonly metadata?: Pick<ObjectMeta, 'labels' | 'annotations' | 'finalizers'>
  readonly spec: PodSpec
}

export interface Node extends KubeObject {
  readonly spec?: {
    readonly unschedulable?: boolean
    readonly podCIDR?: string
    readonly taints?: readonly { readonly key: string; readonly value?: string; readonly effect: string }[]
  }
  readonly status?: { readonly allocatable?: Quantities; readonly conditions?: readonly Condition[] }
}

export interface Deployment extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly paused?: boolean
    readonly minReadySeconds?: number
    readonly revisionHistoryLimit?: number
    readonly progressDeadlineSeconds?: number
    readonly selector: LabelSelectorSource
    readonly strategy?: {
      readonly type?: string
      readonly rollingUpdate?: { readonly maxSurge?: IntOrPercent; readonly maxUnavailable?: IntOrPercent }
    }
    readonly template: PodTemplate
  }
  readonly status?: { readonly conditions?: readonly Condition[] }
}

export interface ReplicaSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly minReadySeconds?: number
    readonly selector: LabelSelectorSource
    readonly template: PodTemplate
  }
  readonly status?: {
    readonly replicas?: number
    readonly readyReplicas?: number
    readonly availableReplicas?: number
    readonly observedGeneration?: number
    readonly conditions?: readonly Condition[]
  }
}

export interface StatefulSet extends KubeObject {
  readonly spec: {
    readonly replicas?: number
    readonly serviceName?: string
    readonly minReadySeconds?: number
    readonly podManagementPolicy?: string
    readonly ordinals?: { readonly start?: number }
    readonly selector: LabelSelectorSource
    readonly template: PodTemplate
    readonly updateStrategy?: { readonly type?: string; readonly rollingUpdate?: { readonly partition?: number } }
    readonly volumeClaimTemplates?: readonly Claim[]
    readonly revisionHistoryLimit?: number
  }
  readonly status?: { readonly currentRevision?: string; readonly updateRevision?: string }
}

export interface DaemonSet extends KubeObject {
  readonly spec: {
    readonly minReadySeconds?: number
    readonly selector: LabelSelectorSource
    readonly template: PodTemplate
    readonly updateStrategy?: {
      readonly type?: string
      readonly rollingUpdate?: { readonly maxUnavailable?: IntOrPercent }
    }
  }
}

export interface Job extends KubeObject {
  readonly spec: {
    readonly parallelism?: number
    readonly completions?: number
    readonly completionMode?: string
    readonly backoffLimit?: number
    readonly suspend?: boolean
    readonly activeDeadlineSeconds?: number
    readonly ttlSecondsAfterFinished?: number
    readonly selector?: LabelSelectorSource
    readonly template: PodTemplate
  }
  readonly status?: {
    readonly startTime?: string
    readonly completionTime?: string
    readonly conditions?: readonly Condition[]
    readonly succeeded?: number
    readonly failed?: number
  }
}

export interface CronJob extends KubeObject {
  readonly spec: {
    readonly schedule: string
    readonly suspend?: boolean
    readonly concurrencyPolicy?: string
    readonly successfulJobsHistoryLimit?: number
    readonly failedJobsHistoryLimit?: number
    readonly jobTemplate: { readonly metadata?: ObjectMeta; readonly spec: Job['spec'] }
  }
  readonly status?: { readonly lastScheduleTime?: string; readonly lastSuccessfulTime?: string }
}

export interface ServicePort {
  readonly name?: string
  readonly port: number
  readonly protocol?: string
  readonly appProtocol?: string
  readonly targetPort?: number | string
}

export interface Service extends KubeObject {
  readonly spec: {
    readonly type?: string
    readonly clusterIP?: string
    readonly selector?: Readonly<Record<string, string>>
    readonly ports?: readonly ServicePort[]
    readonly publishNotReadyAddresses?: boolean
  }
}

export interface Endpoint {
  readonly addresses: readonly string[]
  readonly conditions?: { readonly ready?: boolean; readonly serving?: boolean; readonly terminating?: boolean }
  readonly hostname?: string
  readonly nodeName?: string
  readonly zone?: string
  readonly targetRef?: object
}

export interface EndpointSlice extends KubeObject {
  readonly addressType?: string
  readonly endpoints?: readonly Endpoint[] | null
  readonly ports?: readonly { readonly name?: string; readonly port?: number; readonly protocol?: string }[] | null
}

export interface Claim extends KubeObject {
  readonly spec: {
    readonly volumeName?: string
    readonly storageClassName?: string
    readonly accessModes?: readonly string[]
    readonly resources?: { readonly requests?: Quantities }
    readonly volumeMode?: string
  }
  readonly status?: { readonly phase?: string }
}

export interface PersistentVolume extends KubeObject {
  readonly spec: {
    readonly claimRef?: { readonly namespace?: string; readonly name?: string; readonly uid?: string }
    readonly persistentVolumeReclaimPolicy?: string
  }
  readonly status?: { readonly phase?: string }
}

export interface Budget extends KubeObject {
  readonly spec?: {
    readonly minAvailable?: IntOrPercent
    readonly maxUnavailable?: IntOrPercent
    readonly selector?: LabelSelectorSource
  }
  readonly status?: {
    readonly disruptedPods?: Readonly<Record<string, string>>
    readonly conditions?: readonly Condition[]
  }
}

export interface DataObject extends KubeObject {
  readonly data?: Readonly<Record<string, string>>
}

/** The kinds by resource. */
export interface Kinds {
  pods: Pod
  nodes: Node
  services: Service
  configmaps: DataObject
  secrets: DataObject
  persistentvolumeclaims: Claim
  persistentvolumes: PersistentVolume
  deployments: Deployment
  replicasets: ReplicaSet
  replicationcontrollers: ReplicaSet
  statefulsets: StatefulSet
  daemonsets: DaemonSet
  controllerrevisions: KubeObject
  jobs: Job
  cronjobs: CronJob
  endpointslices: EndpointSlice
  poddisruptionbudgets: Budget
}
export type ResourceName = keyof Kinds

const groups: Readonly<Record<ResourceName, string>> = {
  pods: '',
  nodes: '',
  services: '',
  configmaps: '',
  secrets: '',
  persistentvolumeclaims: '',
  persistentvolumes: '',
  deployments: 'apps',
  replicasets: 'apps',
  replicationcontrollers: '',
  statefulsets: 'apps',
  daemonsets: 'apps',
  controllerrevisions: 'apps',
  jobs: 'batch',
  cronjobs: 'batch',
  endpointslices: 'discovery.k8s.io',
  poddisruptionbudgets: 'policy',
}

export const resourceNames = Object.keys(groups) as ResourceName[]

/** The API of a resource; all are served as v1. */
export function gvrOf(resource: ResourceName): GroupVersionResource {
  return { group: groups[resource], version: 'v1', resource }
}

/** `namespace/name`, or the name of an object without a namespace. */
export function keyOf({ metadata: { namespace, name = '' } }: KubeObject): string {
  return namespace === undefined ? name : `${namespace}/${name}`
}

/** The uid of the object's controller; undefined if it has none. */
export function controllerOf({
  metadata,
}: KubeObject): { readonly uid: string; readonly name: string; readonly kind: string } | undefined {
  return metadata.ownerReferences?.find(({ controller }) => controller === true)
}

/** The reference of an object to its controller. */
export function controlledBy({
  apiVersion,
  kind,
  metadata: { name = '', uid = '' },
}: KubeObject): NonNullable<ObjectMeta['ownerReferences']>[number] {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }
}
