// The simulated nodes: Ready, with a capacity and labels, and the addresses of their pods.
import { isStatusError } from '#apimachinery/status/index.ts'
import { sleep } from '#async/index.ts'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { gvrOf, type Node } from '#simulation/cluster/objects.ts'
import type { Simulation } from '#simulation/cluster/simulation.ts'

export interface NodeOptions {
  /** How many nodes. */
  readonly count: number
  readonly cpu: string
  readonly memory: string
  /** How many pods a node takes. */
  readonly pods: number
  readonly region: string
  /** The second byte of the addresses of pods: another one for each member. */
  readonly subnet: number
}

/** A heartbeat keeps the age of the condition plausible; nothing waits for it. */
const heartbeatMs = 5 * 60_000

export function nodeName(member: string, index: number): string {
  return `${member}-node-${index + 1}`
}

/** The address of the node itself. */
export function nodeAddress({ subnet }: NodeOptions, index: number): string {
  return `172.20.${subnet}.${index + 2}`
}

/** Creates the nodes and keeps them Ready until the signal aborts. */
export async function keepNodes(simulation: Simulation, member: string, options: NodeOptions): Promise<void> {
  const indexes = Array.from({ length: options.count }, (_, index) => index)
  for (const index of indexes) await createNode(simulation, nodeObject(member, options, index))
  const beat = async (): Promise<void> => {
    for (const index of indexes) await writeReady(simulation, nodeName(member, index), options, index)
  }
  await beat()
  for (const index of indexes) await admit(simulation, nodeName(member, index))
  const beating = async (): Promise<void> => {
    for (;;) {
      await sleep(heartbeatMs, simulation.signal)
      await beat()
    }
  }
  simulation.run(beating())
}

async function createNode(simulation: Simulation, node: KubeObject): Promise<void> {
  try {
    await simulation.create('nodes', node)
  } catch (error) {
    if (!isStatusError(error, 'AlreadyExists')) throw error
  }
}

/** Takes the taint away with which the API server keeps pods from a node that is not ready yet. */
async function admit(simulation: Simulation, name: string): Promise<void> {
  const { signal } = simulation
  const node = await simulation.client().get<Node>(gvrOf('nodes'), { name }, { signal })
  const taints = (node.spec?.taints ?? []).filter(({ key }) => key !== 'node.kubernetes.io/not-ready')
  await simulation.patch('nodes', node, { spec: { taints: taints.length === 0 ? null : taints } })
}

function nodeObject(member: string, { region, subnet }: NodeOptions, index: number): KubeObject {
  const name = nodeName(member, index)
  const zone = `${region}-${'abc'[index % 3] ?? 'a'}`
  return {
    apiVersion: 'v1',
    kind: 'Node',
    metadata: {
      name,
      labels: {
        'kubernetes.io/hostname': name,
        'kubernetes.io/os': 'linux',
        'kubernetes.io/arch': 'amd64',
        'node.kubernetes.io/instance-type': 'simulated',
        'topology.kubernetes.io/region': region,
        'topology.kubernetes.io/zone': zone,
      },
    },
    spec: {
      podCIDR: `10.${subnet}.${index}.0/24`,
      podCIDRs: [`10.${subnet}.${index}.0/24`],
      providerID: `simulated://${name}`,
    },
  }
}

async function writeReady(simulation: Simulation, name: string, options: NodeOptions, index: number): Promise<void> {
  const { cpu, memory, pods } = options
  const now = simulation.now()
  const amounts = { cpu, memory, pods: String(pods), 'ephemeral-storage': '100Gi' }
  const known = simulation.cache.nodes.get(name)?.status?.conditions
  const condition = (type: string, status: string, reason: string, message: string) => ({
    type,
    status,
    reason,
    message,
    lastHeartbeatTime: now,
    lastTransitionTime: known?.find((one) => one.type === type)?.lastTransitionTime ?? now,
  })
  const status = {
    capacity: amounts,
    allocatable: amounts,
    addresses: [
      { type: 'InternalIP', address: nodeAddress(options, index) },
      { type: 'Hostname', address: name },
    ],
    conditions: [
      condition('MemoryPressure', 'False', 'KubeletHasSufficientMemory', 'kubelet has sufficient memory available'),
      condition('DiskPressure', 'False', 'KubeletHasNoDiskPressure', 'kubelet has no disk pressure'),
      condition('PIDPressure', 'False', 'KubeletHasSufficientPID', 'kubelet has sufficient PID available'),
      condition('Ready', 'True', 'KubeletReady', 'this node is simulated'),
    ],
    nodeInfo: {
      architecture: 'amd64',
      operatingSystem: 'linux',
      osImage: 'simulated',
      kernelVersion: 'simulated',
      containerRuntimeVersion: 'simulated://1.0',
      kubeletVersion: 'v1.34.3',
      kubeProxyVersion: '',
      bootID: name,
      machineID: name,
      systemUUID: name,
    },
  }
  const patch = { status }
  await simulation
    .client('kubelet')
    .patch(gvrOf('nodes'), { name }, 'merge', patch, { subresource: 'status', signal: simulation.signal })
}
