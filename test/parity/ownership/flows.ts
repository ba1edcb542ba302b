// Stories of several clients that own parts of one object.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { pathOf, valueAt, type Manifest, type SendOptions, type Session } from '#test/parity/support/session.ts'

interface ApplyOptions extends SendOptions {
  readonly as?: string
  readonly force?: boolean
  readonly query?: string
  readonly subresource?: string
}

async function apply(
  session: Session,
  object: Manifest | JsonObject,
  path: string,
  { as = 'applier', force = false, query = '', subresource, ...options }: ApplyOptions = {},
): Promise<void> {
  const target = subresource === undefined ? path : `${path}/${subresource}`
  const parameters = `?fieldManager=${as}${force ? '&force=true' : ''}${query}`
  await session.patch(target + parameters, object, 'apply', options)
}

const configMap = (name: string, data: JsonObject | null, metadata: JsonObject = {}): Manifest => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name: `${name}-$ID`, ...metadata },
  ...(data === null ? {} : { data }),
})

const container = (name: string, rest: JsonObject = {}): JsonObject => ({ name, image: 'nginx:1', ...rest })

const deployment = (
  name: string,
  spec: JsonObject = {},
  { containers = [container('web')], metadata = {} }: { containers?: JsonValue[]; metadata?: JsonObject } = {},
): Manifest => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: `${name}-$ID`, ...metadata },
  spec: {
    selector: { matchLabels: { app: 'web' } },
    template: { metadata: { labels: { app: 'web' } }, spec: { containers } },
    ...spec,
  },
})

/** A story about one object; gives it and its path. */
function story(
  title: string,
  object: Manifest,
  tell: (session: Session, object: Manifest, path: string) => Promise<void>,
): Row {
  return row(title, (session) => tell(session, object, pathOf(object)))
}

const configMaps: Row[] = [
  story(
    'an applier creates, changes and lets go of fields',
    configMap('life', { a: '1', b: '2' }),
    async (s, object, path) => {
      await apply(s, object, path)
      await apply(s, object, path)
      await apply(s, configMap('life', { a: '3' }), path)
      await apply(s, configMap('life', null), path)
      await apply(s, configMap('life', {}), path)
    },
  ),
  story('two appliers share, conflict and force', configMap('two', { a: '1', b: '2' }), async (s, object, path) => {
    await apply(s, object, path, { as: 'one' })
    await apply(s, configMap('two', { a: '1' }), path, { as: 'two' })
    await apply(s, configMap('two', { a: '5', b: '6' }), path, { as: 'two' })
    await apply(s, configMap('two', { a: '5' }), path, { as: 'two', force: true })
    await apply(s, configMap('two', { b: '2' }), path, { as: 'one' })
    await apply(s, configMap('two', null), path, { as: 'two' })
    await s.get(path)
  }),
  story('updates take what appliers own', configMap('upd', { a: '1', b: '2' }), async (s, object, path) => {
    await apply(s, object, path, { as: 'one' })
    await s.change(path, (now) => ((now['data'] as JsonObject)['a'] = '9'))
    await s.patch(`${path}?fieldManager=edit`, { data: { b: '8', c: '7' } })
    await apply(s, object, path, { as: 'one' })
    await apply(s, object, path, { as: 'one', force: true })
    await s.patch(`${path}?fieldManager=edit`, { data: { a: null } })
    await s.patch(`${path}?fieldManager=edit`, [{ op: 'replace', path: '/data', value: { z: '1' } }], 'json')
  }),
  story('what changes nothing is no write', configMap('noop', { a: '1' }), async (s, object, path) => {
    await s.create(object)
    await s.change(path, () => undefined)
    await s.patch(`${path}?fieldManager=x`, { data: { a: '1' } })
    await apply(s, object, path, { as: 'same' })
    await apply(s, object, path, { as: 'same' })
    await apply(s, object, path, { as: 'other' })
  }),
  story('managedFields are taken, reset and refused', configMap('mf', { a: '1' }), async (s, object, path) => {
    await apply(s, object, path, { as: 'one' })
    await s.patch(path, { metadata: { managedFields: [{}] } })
    await apply(s, object, path, { as: 'one' })
    await s.change(path, (now) => ((now['metadata'] as JsonObject)['managedFields'] = []))
    await s.patch(path, { data: { b: '2' } })
    await apply(s, configMap('mf', { a: '2' }), path, { as: 'one' })
    await s.patch(path, { metadata: { managedFields: null } })
    await s.change(path, (now) => delete (now['metadata'] as JsonObject)['managedFields'])
    await s.change(path, (now) => {
      const [first] = ((now['metadata'] as JsonObject)['managedFields'] ?? []) as JsonObject[]
      if (first !== undefined) first['fieldsV1'] = { 'f:data': { 'f:zz': {}, 'f:a': { '.': {} }, 'x:1': {} } }
    })
    await s.change(path, (now) => {
      const [first] = ((now['metadata'] as JsonObject)['managedFields'] ?? []) as JsonObject[]
      if (first !== undefined) first['operation'] = 'Huh'
    })
    await apply(s, configMap('mf', { a: '2' }, { managedFields: [] }), path, { as: 'one' })
    await apply(s, configMap('mf', { a: '2' }, { managedFields: [{ manager: 'x' }] }), path, { as: 'one' })
  }),
  story('what a configuration must be', configMap('bad', { a: '1' }), async (s, object, path) => {
    await s.patch(path, object, 'apply')
    await s.patch(`${path}?force=true`, { a: 1 })
    await apply(s, { ...object, apiVersion: 'v2' }, path)
    await apply(s, { ...object, kind: 'Secret' }, path)
    await apply(s, { metadata: {} }, path)
    await apply(s, { ...object, metadata: { name: 'other' } }, path)
    await apply(s, { ...object, metadata: { name: 'bad-$ID', namespace: 'elsewhere' } }, path)
    await apply(s, { ...object, metadata: { name: 'bad-$ID', uid: 'abc' } }, path)
    await apply(s, { ...object, metadata: { name: 'bad-$ID', resourceVersion: '5' } }, path)
    await apply(s, { ...object, data: { a: 5 } }, path)
    await apply(s, { ...object, data: 'x' }, path)
    await apply(s, { ...object, unknown: 1 }, path)
    await apply(s, { ...object, metadata: { name: 'bad-$ID', labels: 5 } }, path)
    await s.send('PATCH', `${path}?fieldManager=x`, {
      body: '[1]',
      headers: { 'content-type': 'application/apply-patch+yaml' },
    })
    await s.send('PATCH', `${path}?fieldManager=x`, {
      body: '"x"',
      headers: { 'content-type': 'application/apply-patch+yaml' },
    })
    await s.send('PATCH', `${path}?fieldManager=x`, {
      body: '',
      headers: { 'content-type': 'application/apply-patch+yaml' },
    })
    await apply(s, object, path)
    await apply(s, { ...object, metadata: { name: 'bad-$ID', uid: 'abc' } }, path)
    await apply(s, { ...object, metadata: { name: 'bad-$ID', resourceVersion: '5' } }, path)
    await apply(s, { ...object, metadata: { name: 'other' } }, path)
  }),
  story('dry runs, strict fields and repeated ones', configMap('dry', { a: '1' }), async (s, object, path) => {
    await apply(s, object, path, { query: '&dryRun=All' })
    await s.get(path)
    await apply(s, object, path)
    await apply(s, configMap('dry', { a: '2' }), path, { query: '&dryRun=All' })
    const twice = 'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: dry-$ID\ndata:\n  a: x\n  a: y\n'
    for (const validation of ['Strict', 'Warn', 'Ignore'])
      await s.send('PATCH', `${path}?fieldManager=x&force=true&fieldValidation=${validation}`, {
        body: twice,
        headers: { 'content-type': 'application/apply-patch+yaml' },
      })
  }),
  story(
    'kubectl goes from client-side to server-side apply',
    configMap('csa', { a: '1', b: '2' }),
    async (s, object, path) => {
      const last = `${JSON.stringify({ ...object, metadata: { annotations: {}, name: 'csa-$ID' } })}\n`
      const annotated = configMap(
        'csa',
        { a: '1', b: '2' },
        { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': last } },
      )
      await s.create(annotated, { query: '?fieldManager=kubectl-client-side-apply' })
      await apply(s, configMap('csa', { a: '5' }), path, { as: 'somebody' })
      await apply(s, configMap('csa', { a: '5', b: '2' }), path, { as: 'kubectl' })
      await apply(s, configMap('csa', { a: '6' }), path, { as: 'kubectl' })
    },
  ),
  story('kubectl may not take what changed since', configMap('csa2', { a: '1', b: '2' }), async (s, object, path) => {
    const last = `${JSON.stringify({ ...object, metadata: { annotations: {}, name: 'csa2-$ID' } })}\n`
    const annotated = configMap(
      'csa2',
      { a: '1', b: '2' },
      { annotations: { 'kubectl.kubernetes.io/last-applied-configuration': last } },
    )
    await s.create(annotated, { query: '?fieldManager=kubectl-client-side-apply' })
    await s.patch(`${path}?fieldManager=edit`, { data: { b: '9' } })
    await apply(s, configMap('csa2', { a: '5', b: '5' }), path, { as: 'kubectl' })
    await apply(s, configMap('csa2', { a: '5', b: '5' }), path, { as: 'kubectl', force: true })
  }),
  story('more than ten writers become one', configMap('many', { a: '0' }), async (s, object, path) => {
    // Names in the order of the writes, which may be within one second or not.
    await s.create(object, { query: '?fieldManager=a' })
    for (let i = 10; i < 24; i++) await s.patch(`${path}?fieldManager=m${i}`, { data: { [`k${i}`]: String(i) } })
    await apply(s, configMap('many', { k11: '1', k19: 'x' }), path)
  }),
  story('objects without managers', configMap('none', { a: '1' }), async (s, object, path) => {
    await s.create(object)
    await s.patch(path, { metadata: { managedFields: [{}] } })
    await s.patch(path, { data: { a: '2', c: '3' } })
    await apply(s, configMap('none', { a: '5' }), path)
    await apply(s, configMap('none', { a: '5' }), path, { force: true })
  }),
  story('metadata is owned by item', configMap('meta', null, { labels: { a: '1' } }), async (s, object, path) => {
    await apply(s, object, path, { as: 'one' })
    const more = { labels: { b: '1' }, annotations: { x: 'y' }, finalizers: ['example.com/f'] }
    await apply(s, configMap('meta', null, more), path, { as: 'two' })
    await s.patch(`${path}?fieldManager=three`, { metadata: { finalizers: ['example.com/f', 'example.com/g'] } })
    await apply(s, configMap('meta', null, { ...more, finalizers: [] }), path, { as: 'two' })
    const owner = async (name: string): Promise<JsonObject> => {
      const { body } = await s.create(configMap(name, null), { quiet: true })
      const uid = valueAt(body, 'metadata.uid') ?? ''
      return { apiVersion: 'v1', kind: 'ConfigMap', name: `${name}-$ID`, uid }
    }
    const [first, second] = [await owner('first'), await owner('second')]
    for (const ownerReferences of [[first, second], [second], [second, second]])
      await apply(s, configMap('meta', null, { ownerReferences }), path, {
        as: 'four',
        without: ['metadata.managedFields'],
      })
    await apply(s, configMap('meta', null, { ownerReferences: [{ kind: 'x' }] }), path, { as: 'four' })
    await s.patch(path, { metadata: { finalizers: null } })
  }),
]

const workloads: Row[] = [
  story('a Deployment of several appliers', deployment('dep', { replicas: 2 }), async (s, object, path) => {
    await apply(s, object, path, { as: 'one' })
    const sidecar = deployment('dep', {}, { containers: [container('side', { ports: [{ containerPort: 80 }] })] })
    await apply(s, sidecar, path, { as: 'two' })
    await apply(s, deployment('dep', { replicas: 5 }), path, { as: 'two' })
    await apply(s, deployment('dep', { replicas: 5 }), path, { as: 'two', force: true })
    await apply(s, deployment('dep'), path, { as: 'one' })
    const twice = [container('web', { ports: [{ containerPort: 80 }, { containerPort: 80, protocol: 'UDP' }] })]
    await apply(s, deployment('dep', {}, { containers: twice }), path, { as: 'one' })
    const again = [container('web', { ports: [{ containerPort: 80 }, { containerPort: 80 }] })]
    await apply(s, deployment('dep', {}, { containers: again }), path, { as: 'one' })
    await apply(s, deployment('dep', {}, { containers: [container('web'), container('web')] }), path, { as: 'one' })
    await apply(s, deployment('dep', {}, { containers: [{ image: 'x' }] }), path, { as: 'one' })
    await apply(s, deployment('dep', { unknown: 1 }), path, { as: 'one' })
    await s.get(path)
  }),
  story('a Deployment that was created', deployment('cre'), async (s, object, path) => {
    await s.create(object)
    await s.patch(path, { spec: { template: { spec: { containers: [{ name: 'web', image: 'b' }] } } } }, 'strategic')
    await apply(s, deployment('cre', {}, { containers: [container('web', { image: 'c' })] }), path)
    await s.change(path, (now) => ((now['spec'] as JsonObject)['paused'] = true))
  }),
  story('the status of a Deployment', deployment('sta'), async (s, object, path) => {
    await s.create(object)
    await s.patch(`${path}/status`, { status: { replicas: 1 } }, 'strategic')
    const status = {
      apiVersion: 'apps/v1',
      kind: 'Deployment',
      metadata: { name: 'sta-$ID' },
      status: { readyReplicas: 1, replicas: 1 },
    }
    await apply(s, status, path, { subresource: 'status', as: 'controller' })
    await apply(
      s,
      { ...status, spec: { replicas: 9 }, metadata: { name: 'sta-$ID', labels: { a: 'b' }, annotations: { a: 'b' } } },
      path,
      { subresource: 'status', as: 'controller' },
    )
    await apply(s, { ...object, status: { replicas: 5 } }, path, { as: 'controller', force: true })
    await apply(s, { ...status, metadata: { name: 'missing' } }, path.replace('sta-', 'missing-'), {
      subresource: 'status',
    })
  }),
  story('the scale of a Deployment', deployment('sca', { replicas: 1 }), async (s, object, path) => {
    await apply(s, object, path, { as: 'one' })
    await s.patch(`${path}/scale?fieldManager=scaler`, { spec: { replicas: 3 } })
    await apply(s, object, path, { as: 'one' })
    await s.patch(`${path}/scale?fieldManager=scaler`, { spec: { replicas: 4 } })
    await s.get(path)
    const scale = { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'sca-$ID' }, spec: { replicas: 6 } }
    await apply(s, scale, path, { subresource: 'scale', as: 'hpa' })
    await apply(s, scale, path, { subresource: 'scale', as: 'hpa', force: true })
    await s.get(path)
    await apply(s, deployment('sca'), path, { as: 'one' })
    await apply(s, { ...scale, spec: {} }, path, { subresource: 'scale', as: 'hpa' })
    await apply(s, { ...scale, kind: 'Huh' }, path, { subresource: 'scale', as: 'hpa' })
    await s.change(`${path}/scale`, (now) => (now['spec'] = { replicas: 2 }))
    await s.get(path)
  }),
  story(
    'a Service',
    {
      apiVersion: 'v1',
      kind: 'Service',
      metadata: { name: 'svc-$ID' },
      spec: { selector: { a: 'b' }, ports: [{ port: 80 }] },
    },
    async (s, object, path) => {
      await apply(s, object, path, { as: 'one' })
      const spec = (ports: JsonValue[]): JsonObject => ({ ...object, spec: { ports } })
      await apply(s, spec([{ port: 81, name: 'b' }]), path, { as: 'two' })
      await apply(
        s,
        spec([
          { port: 81, name: 'b' },
          { port: 82, name: 'c', protocol: 'UDP' },
        ]),
        path,
        { as: 'one' },
      )
      await s.patch(path, { spec: { type: 'NodePort' } })
      await apply(
        s,
        { ...object, metadata: { name: 'svc-$ID' }, status: { loadBalancer: { ingress: [{ ip: '1.2.3.4' }] } } },
        path,
        { as: 'lb', subresource: 'status' },
      )
    },
  ),
  story(
    'an autoscaler in two versions',
    {
      apiVersion: 'autoscaling/v2',
      kind: 'HorizontalPodAutoscaler',
      metadata: { name: 'hpa-$ID' },
      spec: { maxReplicas: 5, scaleTargetRef: { apiVersion: 'apps/v1', kind: 'Deployment', name: 'x' } },
    },
    async (s, object, path) => {
      await apply(s, object, path, { as: 'one' })
      const old = path.replace('/v2/', '/v1/')
      const spec = object['spec'] as JsonObject
      await apply(s, { ...object, apiVersion: 'autoscaling/v1', spec: { ...spec, maxReplicas: 7 } }, old, { as: 'two' })
      await apply(
        s,
        {
          ...object,
          apiVersion: 'autoscaling/v1',
          spec: { ...spec, maxReplicas: 7, targetCPUUtilizationPercentage: 50 },
        },
        old,
        { as: 'two', force: true },
      )
      await apply(s, { ...object, apiVersion: 'autoscaling/v1', spec }, old, { as: 'two' })
      await s.get(path)
      await s.get(old)
      await apply(s, object, path, { as: 'two' })
      await s.patch(old, { spec: { minReplicas: 2 } })
      await s.get(path)
    },
  ),
  story(
    'a Pod and its parts',
    {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'pod-$ID' },
      spec: { serviceAccountName: 'default', containers: [container('a')] },
    },
    async (s, object, path) => {
      await apply(s, object, path, { as: 'one' })
      const debug = {
        ...object,
        spec: { ephemeralContainers: [{ ...container('debug'), terminationMessagePolicy: 'File' }] },
      }
      await apply(s, debug, path, { as: 'two', subresource: 'ephemeralcontainers' })
      await s.patch(
        `${path}/status`,
        { status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } },
        'strategic',
      )
      await s.patch(
        `${path}/resize`,
        { spec: { containers: [{ name: 'a', resources: { limits: { cpu: '1' } } }] } },
        'strategic',
      )
      await s.get(path)
    },
  ),
  story(
    'a Secret with texts',
    { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'sec-$ID' }, stringData: { a: 'b' } },
    async (s, object, path) => {
      await apply(s, object, path, { as: 'one' })
      await apply(s, object, path, { as: 'one' })
      await apply(s, { ...object, stringData: { a: 'c' } }, path, { as: 'one' })
      await apply(s, { apiVersion: 'v1', kind: 'Secret', metadata: { name: 'sec-$ID' }, data: { a: 'eA==' } }, path, {
        as: 'two',
      })
    },
  ),
]

export const flowRows: readonly Row[] = [...configMaps, ...workloads]
