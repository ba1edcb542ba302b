// Widgets in many logical clusters, for tests of controllers that keep a ConfigMap with the size of each.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { RawClient } from './raw-client.ts'

const crd = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'widgets.example.com' },
  spec: {
    group: 'example.com',
    names: { plural: 'widgets', kind: 'Widget' },
    scope: 'Namespaced',
    versions: [
      {
        name: 'v1',
        served: true,
        storage: true,
        schema: {
          openAPIV3Schema: {
            type: 'object',
            properties: {
              spec: { type: 'object', properties: { size: { type: 'integer' }, doubled: { type: 'integer' } } },
            },
          },
        },
      },
    ],
  },
}

/** Gives these logical clusters the CustomResourceDefinition of Widgets. */
export async function addWidgets(http: RawClient, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = `/clusters/${name}/apis/apiextensions.k8s.io/v1/customresourcedefinitions`
    const { status, text } = await http.request('POST', path, { body: crd })
    expect(status, text).to.equal(201)
  }
}

/** Creates or changes a Widget. */
export async function putWidget(http: RawClient, cluster: string, name: string, size: number): Promise<void> {
  const path = `/clusters/${cluster}/apis/example.com/v1/namespaces/default/widgets/${name}?fieldManager=test&force=true`
  const body = { apiVersion: 'example.com/v1', kind: 'Widget', metadata: { name }, spec: { size } }
  const headers = ['content-type', 'application/apply-patch+yaml']
  const { status, text } = await http.request('PATCH', path, { body: JSON.stringify(body), headers })
  expect(status, text).to.be.oneOf([200, 201])
}

/** The size in each ConfigMap of a Widget, by `CLUSTER/NAME`. */
export async function sizesOf(http: RawClient): Promise<ReadonlyMap<string, string>> {
  const { text } = await http.request('GET', '/clusters/*/api/v1/configmaps?labelSelector=widget')
  const { items } = JSON.parse(text) as { items: (KubeObject & { data?: { size?: string } })[] }
  return new Map(
    items.map(({ metadata: { annotations, name }, data }) => [
      `${annotations?.['kcp.dev/logical-cluster'] ?? ''}/${name}`,
      data?.size ?? '',
    ]),
  )
}
