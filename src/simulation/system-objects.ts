// The workloads that every cluster has in kube-system; they use something of every node.
import type { KubeObject } from '#apimachinery/meta/index.ts'

const namespace = 'kube-system'

function workload(kind: string, name: string, spec: object): KubeObject {
  const labels = { 'k8s-app': name }
  const container = {
    name,
    image: `simulated/${name}:v1.34.3`,
    resources: { requests: { cpu: '50m', memory: '32Mi' } },
  }
  return {
    apiVersion: 'apps/v1',
    kind,
    metadata: { name, namespace, labels },
    spec: {
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: { containers: [container], priorityClassName: 'system-node-critical' },
      },
      ...spec,
    },
  }
}

/** A DaemonSet and a Deployment. */
export function systemObjects(): KubeObject[] {
  return [workload('DaemonSet', 'kube-proxy', {}), workload('Deployment', 'coredns', { replicas: 1 })]
}
