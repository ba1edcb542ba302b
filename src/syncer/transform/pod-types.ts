// The parts of a pod that the syncer reads or changes. Everything else is copied unchanged.
import type { ObjectMeta } from '#apimachinery/meta/index.ts'

export interface EnvVar {
  name: string
  value?: string
  valueFrom?: { fieldRef?: { fieldPath: string }; [source: string]: unknown }
}
export interface ContainerSpec {
  name: string
  env?: EnvVar[]
  volumeMounts?: { name: string; mountPath: string; [field: string]: unknown }[]
  [field: string]: unknown
}
interface DownwardItems {
  items?: { fieldRef?: { fieldPath: string }; [field: string]: unknown }[]
  [field: string]: unknown
}
export interface VolumeSpec {
  name: string
  configMap?: { name?: string; [field: string]: unknown }
  downwardAPI?: DownwardItems
  projected?: {
    sources?: {
      downwardAPI?: DownwardItems
      configMap?: { name?: string; [field: string]: unknown }
      serviceAccountToken?: { audience?: string; [field: string]: unknown }
      [source: string]: unknown
    }[]
    [field: string]: unknown
  }
  [source: string]: unknown
}
export interface PodSpec {
  automountServiceAccountToken?: boolean
  serviceAccountName?: string
  priorityClassName?: string
  priority?: number
  preemptionPolicy?: string
  hostNetwork?: boolean
  hostname?: string
  subdomain?: string
  setHostnameAsFQDN?: boolean
  dnsPolicy?: string
  dnsConfig?: { nameservers?: string[]; searches?: string[]; options?: { name?: string; value?: string }[] }
  volumes?: VolumeSpec[]
  initContainers?: ContainerSpec[]
  containers: ContainerSpec[]
  [field: string]: unknown
}
export interface PodTemplate {
  metadata?: ObjectMeta
  spec: PodSpec
}
