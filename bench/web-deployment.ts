// A Deployment of one small pod.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { DeepReadonly } from '#client/index.ts'

export function webDeployment(namespace: string, name: string): KubeObject {
  const labels = { app: name }
  const resources = { requests: { cpu: '10m', memory: '16Mi' } }
  const container = { name: 'web', image: 'example/web:1', resources, ports: [{ containerPort: 8080 }] }
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name, namespace, labels },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [container] } },
    },
  }
}

/** Whether its pod is, in the state that was applied last. */
export function isAvailable({ metadata, ...object }: DeepReadonly<KubeObject>): boolean {
  const status = (object['status'] ?? {}) as { availableReplicas?: number; observedGeneration?: number }
  return status.availableReplicas === 1 && (status.observedGeneration ?? 0) >= (metadata.generation ?? 0)
}
