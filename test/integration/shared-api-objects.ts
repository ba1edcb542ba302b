// Objects of group apis.kcp.io and requests with them, for the tests of shared APIs.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { waitFor } from '#test/support/index.ts'
import type { Tenant } from './kcp-instance.ts'

export const apis = '/apis/apis.kcp.io'
const definitions = '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'
const rbac = '/apis/rbac.authorization.k8s.io/v1'

export interface WithConditions extends KubeObject {
  readonly status?: { readonly conditions?: { type: string; status: string; reason?: string; message?: string }[] }
}

/** The path of an APIBinding, or of all. */
export const bindingPath = (name?: string): string =>
  `${apis}/v1alpha2/apibindings${name === undefined ? '' : `/${name}`}`

export const bindingTo = (path: string, name: string, spec: object = {}): object => ({
  apiVersion: 'apis.kcp.io/v1alpha2',
  kind: 'APIBinding',
  metadata: { name },
  spec: { reference: { export: { path, name } }, ...spec },
})

export const isReady = ({ status }: WithConditions): boolean =>
  status?.conditions?.some(({ type, status: is }) => type === 'Ready' && is === 'True') === true

export const hasReason =
  (reason: string) =>
  ({ status }: WithConditions): boolean =>
    status?.conditions?.some((condition) => condition.reason === reason) === true

/** A request to the logical cluster of `tenant`; PATCH is a merge patch. */
export async function send(
  tenant: Tenant,
  method: string,
  path: string,
  body?: object,
): Promise<{ readonly status: number; readonly text: string }> {
  const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json'
  const options = body === undefined ? {} : { body: JSON.stringify(body), headers: ['content-type', type] }
  return tenant.http.request(method, `${tenant.base}${path}`, options)
}

/** The object in the response to a request that must succeed. */
export async function answer<T = KubeObject>(...request: Parameters<typeof send>): Promise<T> {
  const { status, text } = await send(...request)
  expect(status, `${request[1]} ${request[2]}: ${text}`).to.be.within(200, 201)
  return JSON.parse(text) as T
}

/** The object once it is as wanted. */
export async function until<T extends KubeObject = WithConditions>(
  tenant: Tenant,
  path: string,
  isWanted: (object: T) => boolean,
): Promise<T> {
  return waitFor(
    async () => {
      const object = await answer<T>(tenant, 'GET', path)
      if (!isWanted(object)) throw new Error(JSON.stringify(object['status']))
      return object
    },
    { what: path, deadlineMs: 10_000 },
  )
}

/** Exports `widgets.example.io` of a logical cluster to everybody. */
export async function exportResource(provider: Tenant, spec: object = {}): Promise<void> {
  const schema = { type: 'object', 'x-kubernetes-preserve-unknown-fields': true }
  await answer(provider, 'POST', definitions, {
    metadata: { name: 'widgets.example.io' },
    spec: {
      group: 'example.io',
      scope: 'Namespaced',
      names: { plural: 'widgets', singular: 'widget', kind: 'Widget', listKind: 'WidgetList' },
      versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: schema } }],
    },
  })
  const resources = [{ name: 'widgets', group: 'example.io', crd: 'widgets.example.io' }]
  await answer(provider, 'POST', `${apis}/v1alpha2/apiexports`, {
    apiVersion: 'apis.kcp.io/v1alpha2',
    kind: 'APIExport',
    metadata: { name: 'widgets' },
    spec: { resources, ...spec },
  })
  await letBind(provider)
}

/** Lets every user of every logical cluster bind the exports of the provider. */
export async function letBind(provider: Tenant): Promise<void> {
  const metadata = { name: 'bind' }
  const rules = [{ apiGroups: ['apis.kcp.io'], resources: ['apiexports'], verbs: ['bind'] }]
  await answer(provider, 'POST', `${rbac}/clusterroles`, { metadata, rules })
  const apiGroup = 'rbac.authorization.k8s.io'
  await answer(provider, 'POST', `${rbac}/clusterrolebindings`, {
    metadata,
    subjects: [{ kind: 'Group', apiGroup, name: 'system:authenticated' }],
    roleRef: { apiGroup, kind: 'ClusterRole', name: 'bind' },
  })
}
