// The CustomResourceDefinition of widgets in a logical cluster, and a widget.
import { expect } from 'chai'
import { waitFor } from '#test/support/index.ts'
import type { Tenant } from './kcp-instance.ts'

const definition = {
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    scope: 'Namespaced',
    names: { plural: 'widgets', kind: 'Widget' },
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: { spec: { type: 'object', properties: { size: { type: 'integer', minimum: 1 } } } },
          },
        },
      },
    ],
  },
}

/** Defines widgets, and creates widget `one` of size 3 in namespace `default`. */
export async function createWidgets({ http, base }: Tenant): Promise<void> {
  const path = `${base}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`
  const created = await http.request('POST', path, { body: definition })
  expect(created.status, created.text).to.equal(201)
  const widgets = `${base}/apis/example.com/v1/namespaces/default/widgets`
  const served = async (): Promise<boolean> => (await http.request('GET', widgets)).status === 200
  await waitFor(served, { what: 'widgets to be served', deadlineMs: 10_000, intervalMs: 50 })
  const widget = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name: 'one' }, spec: { size: 3 } }
  expect((await http.request('POST', widgets, { body: widget })).status).to.equal(201)
}
