// The applications of the demo: a frontend that calls a backend, and one of another team.
import { parseAllDocuments } from 'yaml'
import type { KubeObject } from '#apimachinery/meta/index.ts'

/** The members, and the regions that are their labels. */
export const demoMembers = [
  { name: 'paris', region: 'france' },
  { name: 'oslo', region: 'norway' },
] as const

export const demoClusters = ['shop', 'team-blue'] as const

/** Where the application of a logical cluster runs at first. The steps of a move are short, to be watched. */
function placement(region: string): string {
  return `
apiVersion: kcp.dev/v1alpha1
kind: Placement
metadata: {name: home}
spec:
  prefer: [{weight: 10, labelSelector: {matchLabels: {region: ${region}}}}]
  failover: {tolerationSeconds: 40}
  move: {soakSeconds: 1, drainSeconds: 5}
`
}

/** A Deployment with a Service and a budget. `env`: lines of the container's variables. */
function service(name: string, env: string): string {
  return `
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: ${name}, labels: {app: ${name}}}
spec:
  replicas: 2
  selector: {matchLabels: {app: ${name}}}
  template:
    metadata: {labels: {app: ${name}}}
    spec:
      containers:
        - name: ${name}
          image: demo/${name}:1.0
          ports: [{name: http, containerPort: 8080}]
          readinessProbe: {httpGet: {path: /healthz, port: http}}
          resources: {requests: {cpu: 100m, memory: 64Mi}}
          ${env}
---
apiVersion: v1
kind: Service
metadata: {name: ${name}}
spec: {selector: {app: ${name}}, ports: [{name: http, port: 80, targetPort: http}]}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: ${name}}
spec: {minAvailable: 1, selector: {matchLabels: {app: ${name}}}}
`
}

const settings = `
---
apiVersion: v1
kind: ConfigMap
metadata: {name: frontend-settings}
data: {GREETING: "welcome to the shop"}
`

const frontendEnv =
  'env: [{name: BACKEND_URL, value: "http://backend/stock"}]\n          envFrom: [{configMapRef: {name: frontend-settings}}]'

/** The objects of each logical cluster, in the order in which they are applied. */
export function demoObjects(cluster: (typeof demoClusters)[number]): KubeObject[] {
  const text =
    cluster === 'shop'
      ? placement('france') + settings + service('backend', '') + service('frontend', frontendEnv)
      : placement('norway') + service('site', '')
  return parseAllDocuments(text).map((document) => document.toJSON() as KubeObject)
}

/** What the first step of the guide applies. */
export const helloManifest = `apiVersion: apps/v1
kind: Deployment
metadata: {name: hello}
spec:
  replicas: 2
  selector: {matchLabels: {app: hello}}
  template:
    metadata: {labels: {app: hello}}
    spec:
      containers:
        - name: hello
          image: demo/hello:1.0
          ports: [{containerPort: 8080}]
          resources: {requests: {cpu: 50m, memory: 32Mi}}
---
apiVersion: v1
kind: Service
metadata: {name: hello}
spec: {selector: {app: hello}, ports: [{port: 80, targetPort: 8080}]}
`
