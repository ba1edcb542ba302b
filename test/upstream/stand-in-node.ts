// Some tests run nothing and still want the name of a node that is ready: a Node that is only an object.
import { kubectl } from '../support/index.ts'

const name = 'upstream'
const amounts = { cpu: '4', memory: '8Gi', pods: '110' }
const status = {
  conditions: [{ type: 'Ready', status: 'True', reason: 'StandIn' }],
  capacity: amounts,
  allocatable: amounts,
}

/** Creates the Node in a logical cluster; it is gone again when disposed of. One that is there already is used. */
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
