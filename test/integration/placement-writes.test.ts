// Every way to write the annotation that names members: of each kind that it means something on, by each verb and each
// subresource that carries metadata, small and so large that the offload thread writes it, and by a mutating policy
// that runs after the request.
import { expect } from 'chai'
import type { KubeObject } from '#apimachinery/meta/index.ts'
import resources from '#virtualapi/kinds/resources/generated/resources.json' with { type: 'json' }
import { clustersAnnotation, isPlaceable, workloadKinds } from '#crds/index.ts'
import { isLongRun, waitFor } from '#test/support/index.ts'
import { startInstance, type KcpInstance, type Tenant } from './kcp-instance.ts'
import type { RawResponse } from './raw-client.ts'

type Json = Readonly<Record<string, unknown>>

const forbidden = 'boston'
const forced = { forced: 'yes' }
/** So many values are written by the offload thread. */
const manyValues = 2000
const types = {
  json: 'application/json-patch+json',
  merge: 'application/merge-patch+json',
  strategic: 'application/strategic-merge-patch+json',
  apply: 'application/apply-patch+yaml',
}

const labels = { app: 'x' }
const pod = { containers: [{ name: 'c', image: 'x' }] }
const template = { metadata: { labels }, spec: pod }
const specs: Readonly<Record<string, Json | undefined>> = {
  Deployment: { selector: { matchLabels: labels }, template },
  StatefulSet: { selector: { matchLabels: labels }, serviceName: 'x', template },
  DaemonSet: { selector: { matchLabels: labels }, template },
  ReplicaSet: { selector: { matchLabels: labels }, template },
  ReplicationController: { selector: labels, template },
  Job: { template: { spec: { ...pod, restartPolicy: 'Never' } } },
  CronJob: { schedule: '0 0 1 1 *', jobTemplate: { spec: { template: { spec: { ...pod, restartPolicy: 'Never' } } } } },
  Pod: pod,
  Namespace: undefined,
}

interface Row {
  readonly kind: string
  readonly apiVersion: string
  /** Of the collection, below the logical cluster. */
  readonly path: string
  /** Those that are updated or patched. */
  readonly subresources: readonly { readonly name: string; readonly verbs: readonly string[] }[]
}

const rows: readonly Row[] = [
  ...workloadKinds.map(({ gvr, apiVersion, kind }) => ({
    resource: gvr.resource,
    group: gvr.group,
    apiVersion,
    kind,
  })),
  { resource: 'namespaces', group: '', apiVersion: 'v1', kind: 'Namespace' },
].map(({ resource, group, apiVersion, kind }) => {
  const info = resources.find((one) => one.resource === resource && one.group === group)
  const base = group === '' ? '/api/v1' : `/apis/${apiVersion}`
  return {
    ...{ kind, apiVersion },
    path: `${base}${kind === 'Namespace' ? '' : '/namespaces/default'}/${resource}`,
    subresources: (info?.subresources ?? [])
      .map(({ name, verbs }) => ({ name, verbs: verbs }))
      .filter(({ verbs }) => verbs.includes('update') || verbs.includes('patch')),
  }
})

describe('a forbidden member in the annotation of a tenant', function () {
  this.timeout(180_000)
  const stack = new AsyncDisposableStack()
  let kcp: KcpInstance
  let tenant: Tenant
  let count = 0

  const send = (method: string, path: string, body: unknown, type = 'application/json'): Promise<RawResponse> =>
    tenant.http.request(method, tenant.base + path, {
      ...(body !== undefined && { body: body as object }),
      headers: ['content-type', type],
    })
  const values = (isLarge: boolean): Json =>
    isLarge ? Object.fromEntries(Array.from({ length: manyValues }, (_, index) => [`v-${index}`, 'x'])) : {}
  const objectOf = ({ kind, apiVersion }: Row, name: string, metadata: Json = {}): Json => ({
    ...{ apiVersion, kind, metadata: { name, ...metadata } },
    ...(specs[kind] && { spec: specs[kind] }),
  })
  const wish = { annotations: { [clustersAnnotation]: forbidden } }
  const stored = async (row: Row, name: string): Promise<string | undefined> => {
    const { status, json } = await send('GET', `${row.path}/${name}`, undefined)
    if (status === 404) return undefined
    const object = json() as unknown as KubeObject
    // On a pod that was bound before it was placed, it means nothing.
    const means = row.kind === 'Namespace' || isPlaceable(object)
    return means ? object.metadata.annotations?.[clustersAnnotation] : undefined
  }

  before(async () => {
    kcp = stack.use(await startInstance())
    const admins = (path: string, body: object): Promise<RawResponse> =>
      kcp.admin.http.request('POST', `/clusters/root/apis/kcp.dev/v1alpha1/${path}`, { body })
    for (const name of ['berlin', forbidden])
      await admins('memberclusters', { apiVersion: 'kcp.dev/v1alpha1', kind: 'MemberCluster', metadata: { name } })
    const rule = { apiVersion: 'kcp.dev/v1alpha1', kind: 'Placement', metadata: { name: 'berlin-only' } }
    expect((await admins('placements', { ...rule, spec: { clusters: ['berlin'] } })).status).to.equal(201)
    tenant = await kcp.tenant('acme')
    await waitFor(
      async () =>
        (await send('POST', '/api/v1/namespaces?dryRun=All', objectOf(rows.at(-1)!, 'x', wish))).status === 403,
      { what: 'the rule to be known', deadlineMs: 20_000 },
    )
  })
  after(() => stack.disposeAsync())

  /** Whether a request that would write the annotation was refused for the rule, or wrote something else. */
  const check = async (row: Row, name: string, what: string, { status, text }: RawResponse): Promise<string[]> => {
    const is = await stored(row, name)
    if (is !== undefined) return [`${what}: ${status}, and ${is} is stored`]
    if (status === 403 && !text.includes('does not allow member cluster')) return [`${what}: ${text}`]
    return status >= 500 ? [`${what}: ${status} ${text}`] : []
  }

  for (const isLarge of [false, true])
    for (const row of isLarge && !isLongRun
      ? rows.filter(({ kind }) => ['Deployment', 'Namespace'].includes(kind))
      : rows)
      it(`is refused on ${isLarge ? 'large' : 'small'} objects of kind ${row.kind}, by every verb and subresource`, async () => {
        const wrong: string[] = []
        const statuses: number[] = []
        const annotations = values(isLarge)
        const annotated = { annotations: { ...annotations, ...wish.annotations } }
        const record = async (name: string, what: string, reply: RawResponse): Promise<void> => {
          statuses.push(reply.status)
          wrong.push(...(await check(row, name, `${what} ${row.kind}`, reply)))
        }
        const fresh = (): string => `w-${count++}`
        const created = fresh()
        await record(created, 'create', await send('POST', row.path, objectOf(row, created, annotated)))
        const applied = fresh()
        const apply = '?fieldManager=test&force=true'
        await record(
          applied,
          'create by apply',
          await send('PATCH', `${row.path}/${applied}${apply}`, objectOf(row, applied, annotated), types.apply),
        )
        for (const subresource of [{ name: '', verbs: ['update', 'patch'] }, ...row.subresources]) {
          const name = fresh()
          const made = await send('POST', row.path, objectOf(row, name, { annotations }))
          expect(made.status, made.text).to.equal(201)
          const path = `${row.path}/${name}${subresource.name && `/${subresource.name}`}`
          const what = (verb: string): string => `${verb} of ${subresource.name || 'the object'}`
          if (subresource.verbs.includes('update')) {
            const { metadata, ...rest } = (await send('GET', `${row.path}/${name}`, undefined)).json() as {
              metadata: Json
            }
            const { resourceVersion: _, ...meta } = metadata
            await record(
              name,
              what('update'),
              await send('PUT', path, { ...rest, metadata: { ...meta, ...annotated } }),
            )
          }
          if (!subresource.verbs.includes('patch')) continue
          for (const type of ['merge', 'strategic'] as const)
            await record(name, what(type), await send('PATCH', path, { metadata: wish }, types[type]))
          const add = [{ op: 'add', path: '/metadata/annotations', value: wish.annotations }]
          await record(name, what('JSON patch'), await send('PATCH', path, add, types.json))
          const whole = { apiVersion: row.apiVersion, kind: row.kind, metadata: { name, ...wish } }
          await record(name, what('apply'), await send('PATCH', `${path}${apply}`, whole, types.apply))
        }
        if (row.kind === 'Pod')
          for (const collection of [false, true]) {
            const name = fresh()
            await send('POST', row.path, objectOf(row, name, { annotations }))
            const path = collection ? '/api/v1/namespaces/default/bindings' : `${row.path}/${name}/binding`
            const binding = {
              apiVersion: 'v1',
              kind: 'Binding',
              metadata: { name, ...wish },
              target: { kind: 'Node', name: 'n' },
            }
            await record(name, 'binding', await send('POST', path, binding))
          }
        expect(wrong).to.deep.equal([])
        expect(statuses.filter((status) => status === 403)).to.have.length.greaterThan(5)
      })

  it('is refused where a mutating policy adds it, after create, update and status', async () => {
    const policies = '/apis/admissionregistration.k8s.io/v1beta1/mutatingadmissionpolic'
    const apiVersion = 'admissionregistration.k8s.io/v1beta1'
    const everything = [{ apiGroups: ['*'], apiVersions: ['*'], operations: ['CREATE', 'UPDATE'], resources: ['*/*'] }]
    const policy = {
      ...{ apiVersion, kind: 'MutatingAdmissionPolicy', metadata: { name: 'far' } },
      spec: {
        ...{ reinvocationPolicy: 'Never', failurePolicy: 'Fail' },
        matchConstraints: { resourceRules: everything, objectSelector: { matchLabels: forced } },
        mutations: [
          {
            patchType: 'JSONPatch',
            jsonPatch: {
              expression: `[JSONPatch{op: "add", path: "/metadata/annotations", value: {"${clustersAnnotation}": "${forbidden}"}}]`,
            },
          },
        ],
      },
    }
    const binding = {
      apiVersion,
      kind: 'MutatingAdmissionPolicyBinding',
      metadata: { name: 'far' },
      spec: { policyName: 'far' },
    }
    const before = new Map<Row, string>()
    for (const row of rows) {
      const name = `p-${count++}`
      await send('POST', row.path, objectOf(row, name, { labels: forced }))
      before.set(row, name)
    }
    expect((await send('POST', `${policies}ies`, policy)).status).to.equal(201)
    expect((await send('POST', `${policies}ybindings`, binding)).status).to.equal(201)
    const wrong: string[] = []
    for (const [row, old] of before) {
      const name = `p-${count++}`
      const made = await send('POST', row.path, objectOf(row, name, { labels: forced }))
      wrong.push(...(await check(row, name, `create ${row.kind}`, made)))
      if (made.status !== 403) wrong.push(`create ${row.kind}: ${made.status}`)
      for (const subresource of ['', 'status']) {
        const path = `${row.path}/${old}${subresource && `/${subresource}`}`
        const patch =
          subresource === '' ? { metadata: { labels: { touched: 'yes' } } } : { status: { phase: 'Active' } }
        const reply = await send('PATCH', path, patch, types.merge)
        wrong.push(...(await check(row, old, `patch of ${row.kind} ${subresource}`, reply)))
      }
    }
    expect(wrong).to.deep.equal([])
  })
})
