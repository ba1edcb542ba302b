// Arguments for kubectl explain, and a custom resource with every feature that it prints.

/** Arguments of `kubectl explain`. */
export const explained: readonly (readonly string[])[] = [
  ['pods'],
  ['pod.spec.containers'],
  ['pod.spec.containers.imagePullPolicy'],
  ['pod.spec.volumes', '--recursive'],
  ['po.spec.containers.ports.protocol', '--output=plaintext-openapiv2'],
  ['deployments.spec.strategy'],
  ['deploy', '--recursive'],
  ['svc.spec.type'],
  ['hpa'],
  ['hpa', '--api-version=autoscaling/v1'],
  ['events.events.k8s.io'],
  ['crd.spec.versions.schema'],
  ['networkpolicies.spec.ingress'],
  ['pvc.status.allocatedResourceStatuses'],
  ['roles.rules'],
  ['nodes.status'],
  ['gadgets'],
  ['gadgets', '--recursive'],
  ['gadgets.spec.size'],
  ['gadgets.spec.parts'],
  ['gadgets.spec.anything'],
  ['gadgets.metadata.name'],
  ['gadget', '--api-version=documents.example.com/v2'],
  ['gadgets', '--output=plaintext-openapiv2'],
  ['gadgets.spec.absent'],
  ['pods.nothing'],
  ['nonsense'],
  ['pods', '--api-version=nonsense/v1'],
]

const spec = {
  type: 'object',
  description: 'What the gadget shall be.\n\nIn two paragraphs.',
  required: ['size'],
  properties: {
    size: { type: 'integer', format: 'int32', minimum: 1, default: 3, description: 'How large it is.' },
    color: { type: 'string', enum: ['red', 'green'] },
    parts: {
      type: 'array',
      items: { type: 'object', properties: { name: { type: 'string', description: 'Of the part.' } } },
    },
    labels: { type: 'object', additionalProperties: { type: 'string' } },
    anything: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true },
    port: { 'x-kubernetes-int-or-string': true },
    since: { type: 'string', format: 'date-time', nullable: true },
  },
}
const version = (name: string, description: string, storage: boolean): object => ({
  name,
  served: true,
  storage,
  subresources: { status: {} },
  // Not in all: a real server would take them for those of the whole definition, which has no schema.
  ...(storage ? { selectableFields: [{ jsonPath: '.spec.color' }] } : {}),
  schema: {
    openAPIV3Schema: {
      type: 'object',
      description,
      properties: { spec, status: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
    },
  },
})

export const definition = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'gadgets.documents.example.com' },
  spec: {
    group: 'documents.example.com',
    scope: 'Namespaced',
    names: { plural: 'gadgets', singular: 'gadget', kind: 'Gadget', shortNames: ['gd'], categories: ['all'] },
    versions: [version('v1', 'A gadget.', true), version('v2', 'A newer gadget.', false)],
  },
}
