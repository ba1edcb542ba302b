// Creates a Node object without a kubelet: some tests run no pods but need the name of a ready node.
import { kubectl } from '#test/support/index.ts'

const amounts = { cpu: '4', memory: '8Gi', pods: '110' }
const ready = { type: 'Ready', status: 'True', reason: 'StandIn' }

interface StandIn {
  readonly name?: string
  /** The node's own address. */
  readonly address?: string
}

/** Creates the Node in a logical cluster and deletes it when disposed. An existing one is used. */
export async function standInNode(
  kubeconfig: string,
  { name = 'upstream', address }: StandIn = {},
): Promise<AsyncDisposable> {
  const labels = { 'kubernetes.io/hostname': name, 'kubernetes.io/os': 'linux' }
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name, labels } }
  const addresses = address === undefined ? [] : [{ type: 'InternalIP', address }]
  const status = { conditions: [ready], capacity: amounts, allocatable: amounts, addresses }
  await kubectl(kubeconfig, ['apply', '-f', '-'], { input: node })
  const patch = (content: object, ...args: string[]): Promise<unknown> =>
    kubectl(kubeconfig, ['patch', 'node', name, '--type=merge', '-p', JSON.stringify(content), ...args])
  await patch({ status }, '--subresource=status')
  // A new Node gets the taint not-ready, which the node controller takes away; there is none here.
  await patch({ spec: { taints: null } })
  return {
    async [Symbol.asyncDispose]() {
      await kubectl(kubeconfig, ['delete', 'node', name, '--ignore-not-found'])
    },
  }
}
