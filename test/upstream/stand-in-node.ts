// Creates a Node object without a kubelet: some tests run no pods but need the name of a ready node.
import { kubectl } from '../support/index.ts'

const name = 'upstream'
const amounts = { cpu: '4', memory: '8Gi', pods: '110' }
const status = {
  conditions: [{ type: 'Ready', status: 'True', reason: 'StandIn' }],
  capacity: amounts,
  allocatable: amounts,
}

/** Creates the Node in a logical cluster and deletes it when disposed. An existing one is used. */
export async function standInNode(kubeconfig: string): Promise<AsyncDisposable> {
  const node = { apiVersion: 'v1', kind: 'Node', metadata: { name } }
  await kubectl(kubeconfig, ['apply', '-f', '-'], { input: node })
  await kubectl(kubeconfig, [
    'patch',
    'node',
    name,
    '--subresource=status',
    '--type=merge',
    '-p',
    JSON.stringify({ status }),
  ])
  return {
    async [Symbol.asyncDispose]() {
      await kubectl(kubeconfig, ['delete', 'node', name, '--ignore-not-found'])
    },
  }
}
