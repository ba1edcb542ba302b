// One application of many kinds, in two versions, as the files of a Git repository.
import { stringify } from 'yaml'

const namespace = 'shop'
const labels = { app: 'web' }

const widgetCrd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.shop.example.com' },
  spec: {
    group: 'shop.example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        subresources: { status: {} },
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: {
                type: 'object',
                'x-kubernetes-validations': [{ rule: 'self.size <= self.limit', message: 'size is above the limit' }],
                properties: {
                  size: { type: 'integer' },
                  limit: { type: 'integer', default: 10 },
                  parts: {
                    type: 'array',
                    'x-kubernetes-list-type': 'map',
                    'x-kubernetes-list-map-keys': ['name'],
                    items: {
                      type: 'object',
                      required: ['name'],
                      properties: { name: { type: 'string' }, weight: { type: 'integer', default: 1 } },
                    },
                  },
                  tags: { type: 'array', 'x-kubernetes-list-type': 'set', items: { type: 'string' } },
                },
              },
              status: { type: 'object', properties: { phase: { type: 'string' } } },
            },
          },
        },
      },
    ],
  },
}

const object = (apiVersion: string, kind: string, name: string, rest: object, metadata: object = {}) => ({
  apiVersion,
  kind,
  metadata: { name, namespace, ...metadata },
  ...rest,
})
const namespaceObject = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace, labels: { team: 'a' } } }
const widget = (size: number, parts: readonly object[]) =>
  object('shop.example.com/v1', 'Widget', 'first', { spec: { size, parts, tags: ['a', 'b'] } })
const settings = (data: Record<string, string>) => object('v1', 'ConfigMap', 'settings', { data })
const service = (portName: string) =>
  object('v1', 'Service', 'web', {
    spec: {
      selector: labels,
      ports: [
        { name: portName, port: 80, targetPort: 'http' },
        { name: 'metrics', port: 9090 },
      ],
    },
  })
const deployment = (image: string) =>
  object('apps/v1', 'Deployment', 'web', {
    spec: {
      replicas: 2,
      selector: { matchLabels: labels },
      template: {
        metadata: { labels },
        spec: {
          serviceAccountName: 'web',
          containers: [
            {
              name: 'web',
              image,
              ports: [{ name: 'http', containerPort: 8080 }],
              env: [{ name: 'COLOUR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'colour' } } }],
              resources: { requests: { cpu: '0.1', memory: '128Mi' }, limits: { memory: '134217728' } },
              readinessProbe: { httpGet: { path: '/healthz', port: 'http' } },
            },
          ],
        },
      },
    },
  })
const ingress = object('networking.k8s.io/v1', 'Ingress', 'web', {
  spec: {
    rules: [
      {
        host: 'shop.example.com',
        http: {
          paths: [{ path: '/', pathType: 'Prefix', backend: { service: { name: 'web', port: { name: 'http' } } } }],
        },
      },
    ],
  },
})
const others = [
  object('v1', 'ServiceAccount', 'web', { automountServiceAccountToken: false }),
  object('v1', 'Secret', 'web', { stringData: { password: 'swordfish' }, type: 'Opaque' }),
  object('rbac.authorization.k8s.io/v1', 'Role', 'web', {
    rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }],
  }),
  object('rbac.authorization.k8s.io/v1', 'RoleBinding', 'web', {
    roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'web' },
    subjects: [{ kind: 'ServiceAccount', name: 'web', namespace }],
  }),
  object('networking.k8s.io/v1', 'NetworkPolicy', 'web', {
    spec: { podSelector: { matchLabels: labels }, policyTypes: ['Ingress'], ingress: [{ ports: [{ port: 8080 }] }] },
  }),
  object('policy/v1', 'PodDisruptionBudget', 'web', {
    spec: { maxUnavailable: '50%', selector: { matchLabels: labels } },
  }),
  object('batch/v1', 'CronJob', 'report', {
    spec: {
      schedule: '*/5 * * * *',
      jobTemplate: {
        spec: {
          template: { spec: { restartPolicy: 'Never', containers: [{ name: 'report', image: 'busybox:1.36' }] } },
        },
      },
    },
  }),
]

const texts = (objects: readonly object[]): string => objects.map((one) => stringify(one)).join('---\n')

/** The first version. */
export const shopFiles: Readonly<Record<string, string>> = {
  'shop/namespace.yaml': texts([namespaceObject, widgetCrd]),
  'shop/web.yaml': texts([
    deployment('nginx:1.27'),
    service('http'),
    ingress,
    settings({ colour: 'blue', size: 'small' }),
  ]),
  'shop/widget.yaml': texts([widget(1, [{ name: 'left' }, { name: 'right', weight: 2 }])]),
  'shop/others.yaml': texts(others),
}

/** The next one: another image, a renamed port, a ConfigMap without one of its keys, no Ingress, other parts. */
export const nextShopFiles: Readonly<Record<string, string>> = {
  ...shopFiles,
  'shop/web.yaml': texts([deployment('nginx:1.28'), service('web'), settings({ colour: 'green' })]),
  'shop/widget.yaml': texts([widget(2, [{ name: 'right', weight: 2 }, { name: 'top' }])]),
}

/** What `kubectl get` must be asked for to see the whole application. */
export const shopKinds = 'deploy,svc,ing,cm,secret,sa,role,rolebinding,netpol,pdb,cronjob,widgets.shop.example.com'

/** The status that a controller of Deployments would write once all pods are ready. */
export const rolledOut = (generation: number): object => ({
  ...{ observedGeneration: generation, replicas: 2, updatedReplicas: 2, readyReplicas: 2, availableReplicas: 2 },
  conditions: [
    { type: 'Available', status: 'True', reason: 'MinimumReplicasAvailable', message: 'ready' },
    { type: 'Progressing', status: 'True', reason: 'NewReplicaSetAvailable', message: 'done' },
  ],
})
