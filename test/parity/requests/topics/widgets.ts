// A custom resource shared by topics: with status, scale, a selectable field and a column.
import { get, post, type Row } from '#test/parity/requests/row.ts'

const group = 'parity.example.com'

/** Rows that define it and wait until it is served. Each topic has its own, so that topics do not affect each other. */
export function widgets(topic: string): {
  readonly rows: readonly Row[]
  readonly path: string
  readonly apiVersion: string
  readonly plural: string
} {
  const plural = `${topic}widgets`
  const apiVersion = `${topic}.${group}/v1`
  const path = `/apis/${apiVersion}/namespaces/{ns}/${plural}`
  const crd = {
    apiVersion: 'apiextensions.k8s.io/v1',
    kind: 'CustomResourceDefinition',
    metadata: { name: `${plural}.${topic}.${group}` },
    spec: {
      group: `${topic}.${group}`,
      scope: 'Namespaced',
      names: { plural, singular: `${topic}widget`, kind: 'Widget' },
      versions: [
        {
          name: 'v1',
          served: true,
          storage: true,
          subresources: {
            status: {},
            scale: { specReplicasPath: '.spec.replicas', statusReplicasPath: '.status.replicas' },
          },
          selectableFields: [{ jsonPath: '.spec.color' }],
          additionalPrinterColumns: [{ name: 'Color', type: 'string', jsonPath: '.spec.color' }],
          schema: {
            openAPIV3Schema: {
              type: 'object',
              properties: {
                spec: {
                  type: 'object',
                  properties: {
                    color: { type: 'string' },
                    replicas: { type: 'integer' },
                    size: { type: 'integer', default: 3 },
                    parts: { type: 'array', items: { type: 'string' } },
                  },
                },
                status: { type: 'object', properties: { replicas: { type: 'integer' }, phase: { type: 'string' } } },
              },
            },
          },
        },
      ],
    },
  }
  const rows = [
    post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', crd, { what: 'a definition', statusOnly: true }),
    get(path, { what: 'served', until: 200, statusOnly: true }),
  ]
  return { rows, path, apiVersion, plural }
}
