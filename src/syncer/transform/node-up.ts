// A node of a member as tenants with pods on it see the node: the fields that `kubectl get nodes` and tools for
// schedulers read. Only fields listed here are shown: taints, other labels, annotations, addresses, images and volumes
// may tell of other tenants.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'

const shownLabels = [
  'kubernetes.io/arch',
  'kubernetes.io/hostname',
  'kubernetes.io/os',
  'node.kubernetes.io/instance-type',
  'topology.kubernetes.io/region',
  'topology.kubernetes.io/zone',
] as const
const shownConditions: ReadonlySet<string> = new Set([
  'Ready',
  'MemoryPressure',
  'DiskPressure',
  'PIDPressure',
  'NetworkUnavailable',
])
/** Fields of nodeInfo that are shown. Fields that identify the machine are empty, because the API requires them. */
const shownInfo = [
  'architecture',
  'containerRuntimeVersion',
  'kernelVersion',
  'kubeletVersion',
  'operatingSystem',
  'osImage',
] as const

interface Condition {
  readonly type: string
  readonly status: string
  readonly reason?: string
  readonly lastTransitionTime?: string
}

export interface NodeStatusUp {
  readonly capacity: Readonly<Record<string, string>>
  readonly allocatable: Readonly<Record<string, string>>
  readonly conditions: readonly Condition[]
  readonly nodeInfo: Readonly<Record<string, string>>
}
export interface NodeUp extends KubeObject {
  readonly spec: { readonly unschedulable?: true }
  readonly status: NodeStatusUp
}

/** The node without uid and revision, which belong to the copy of each logical cluster. */
export function nodeUp(node: DeepReadonly<KubeObject>): NodeUp {
  const { name = '', labels = {} } = node.metadata
  const spec = (node['spec'] ?? {}) as { readonly unschedulable?: boolean }
  const status = (node['status'] ?? {}) as Partial<NodeStatusUp>
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: { name, labels: pick(labels, shownLabels) },
    spec: spec.unschedulable ? { unschedulable: true } : {},
    status: {
      capacity: { ...status.capacity },
      allocatable: { ...status.allocatable },
      conditions: (status.conditions ?? []).filter(({ type }) => shownConditions.has(type)).map(conditionUp),
      nodeInfo: {
        bootID: '',
        kubeProxyVersion: '',
        machineID: '',
        systemUUID: '',
        ...pick(status.nodeInfo ?? {}, shownInfo),
      },
    },
  }
}

/**
 * A condition without the time of the last heartbeat, which would cause a write upstream for each heartbeat, and
 * without the message, which quotes the node.
 */
function conditionUp({ type, status, reason, lastTransitionTime }: Condition): Condition {
  return { type, status, ...(reason && { reason }), ...(lastTransitionTime && { lastTransitionTime }) }
}

function pick(values: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (values[name] === undefined ? [] : [[name, values[name]]])))
}
