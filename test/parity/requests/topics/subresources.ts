// Every method on the subresources of many kinds: those that the kind has, those that it has not, and those of absent
// objects.
import { del, get, patch, post, put, send, type Row, type Topic } from '#test/parity/requests/row.ts'
import { widgets } from './widgets.ts'

const pods = '/api/v1/namespaces/{ns}/pods'
const maps = '/api/v1/namespaces/{ns}/configmaps'
const services = '/api/v1/namespaces/{ns}/services'
const accounts = '/api/v1/namespaces/{ns}/serviceaccounts'
const sets = '/apis/apps/v1/namespaces/{ns}/replicasets'
const nodes = '/api/v1/nodes'
const requests = '/apis/certificates.k8s.io/v1/certificatesigningrequests'
const custom = widgets('subresources')
const gadgets = '/apis/gadgets.subresources.parity.example.com/v1/namespaces/{ns}/gadgets'

const containers = [{ name: 'c', image: 'i' }]
const replicaSet = {
  metadata: { name: 'r' },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: 'a' } },
    template: { metadata: { labels: { app: 'a' } }, spec: { containers } },
  },
}
/** A definition without subresources. */
const gadgetDefinition = {
  metadata: { name: 'gadgets.gadgets.subresources.parity.example.com' },
  spec: {
    group: 'gadgets.subresources.parity.example.com',
    scope: 'Namespaced',
    names: { plural: 'gadgets', kind: 'Gadget' },
    versions: [{ name: 'v1', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object' } } }],
  },
}
const gadget = { apiVersion: 'gadgets.subresources.parity.example.com/v1', kind: 'Gadget', metadata: { name: 'g' } }

/** Reads, writes of nothing, and a write of another object. */
function everyMethod(path: string): Row[] {
  return [
    get(path),
    post(path, {}),
    put(path, { metadata: { name: 'other' } }),
    patch('merge', path, {}),
    patch('apply', path, {}),
    del(path),
  ]
}

/** A scale of the ReplicaSet with one change. */
const scale = (what: string, change: object): Row =>
  put(
    `${sets}/r/scale`,
    { apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'r' }, spec: { replicas: 1 }, ...change },
    { what },
  )
const token = (what: string, spec: unknown, path = `${accounts}/default/token`): Row => post(path, { spec }, { what })

export const subresources: Topic = {
  name: 'subresources',
  rows: [
    ...custom.rows,
    post('/apis/apiextensions.k8s.io/v1/customresourcedefinitions', gadgetDefinition, {
      what: 'without subresources',
      statusOnly: true,
    }),
    get(gadgets, { what: 'served', until: 200, statusOnly: true }),
    post(maps, { metadata: { name: 'm' } }),
    post(pods, { metadata: { name: 'p' }, spec: { automountServiceAccountToken: false, containers } }),
    post(services, { metadata: { name: 's' }, spec: { clusterIP: 'None', ports: [{ port: 80 }] } }),
    post(sets, replicaSet),
    post(nodes, { metadata: { name: 'subresources' } }, { statusOnly: true }),
    post(gadgets, gadget),
    post(custom.path, { apiVersion: custom.apiVersion, kind: 'Widget', metadata: { name: 'w' } }),
    ...[
      `${maps}/m/status`,
      `${maps}/m/scale`,
      `${maps}/m/nonsense/more`,
      `${pods}/p/status`,
      `${pods}/p/binding`,
      `${pods}/p/eviction`,
      `${pods}/p/ephemeralcontainers`,
      `${pods}/p/resize`,
      `${pods}/p/scale`,
      `${pods}/absent/status`,
      `${pods}/absent/binding`,
      `${pods}/absent/eviction`,
      `${pods}/absent/log`,
      `${pods}/absent/proxy`,
      `${services}/s/status`,
      `${services}/s/scale`,
      `${services}/absent/proxy`,
      `${sets}/r/status`,
      `${sets}/r/scale`,
      `${sets}/absent/status`,
      `${sets}/absent/scale`,
      `${accounts}/default/status`,
      `${accounts}/absent/token`,
      '/api/v1/namespaces/{ns}/status',
      '/api/v1/namespaces/{ns}/scale',
      '/api/v1/namespaces/absent/finalize',
      '/api/v1/namespaces/absent/status',
      `${nodes}/subresources/status`,
      `${nodes}/subresources/scale`,
      `${nodes}/absent/status`,
      `${requests}/absent/approval`,
      `${requests}/absent/status`,
      '/apis/batch/v1/namespaces/{ns}/cronjobs/absent/status',
      '/apis/rbac.authorization.k8s.io/v1/clusterroles/view/status',
      '/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas/absent/status',
      '/apis/apiregistration.k8s.io/v1/apiservices/absent/status',
      '/apis/storage.k8s.io/v1/storageclasses/absent/status',
      `${custom.path}/w/status`,
      `${custom.path}/w/scale`,
      `${custom.path}/w/nonsense`,
      `${custom.path}/absent/status`,
      `${custom.path}/absent/scale`,
      `${gadgets}/g/status`,
      `${gadgets}/g/scale`,
    ].flatMap(everyMethod),

    // Scales.
    scale('nothing changed', {}),
    scale('a negative number', { spec: { replicas: -1 } }),
    scale('too large a number', { spec: { replicas: 2 ** 31 } }),
    scale('half a replica', { spec: { replicas: 1.5 } }),
    scale('another version', { apiVersion: 'autoscaling/v2' }),
    scale('a version of apps', { apiVersion: 'apps/v1' }),
    scale('another kind', { apiVersion: 'apps/v1', kind: 'ReplicaSet' }),
    scale('another namespace', { metadata: { name: 'r', namespace: 'default' } }),
    scale('another uid', { metadata: { name: 'r', uid: 'x' } }),
    scale('a stale revision', { metadata: { name: 'r', resourceVersion: '1' } }),
    scale('no spec', { spec: null }),
    scale('a status', { status: { replicas: 9 } }),
    get(`${sets}/r/scale`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
    get(`${sets}/r/scale`, { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }),
    get(`${sets}/r/scale`, { accept: 'application/yaml' }),
    get(`${sets}/r/scale?resourceVersion=0`),
    get(`${sets}/r/scale?watch=true&timeoutSeconds=1`),
    patch('strategic', `${sets}/r/scale`, { spec: { replicas: 0 } }),
    patch('json', `${sets}/r/scale`, [{ op: 'test', path: '/spec/replicas', value: 7 }]),
    patch('json', `${sets}/r/scale`, [{ op: 'replace', path: '/metadata/name', value: 'x' }], { what: 'the name' }),
    patch('apply', `${sets}/r/scale?fieldManager=me`, {
      ...{ apiVersion: 'autoscaling/v1', kind: 'Scale', metadata: { name: 'r' }, spec: { replicas: 0 } },
    }),
    patch('strategic', `${custom.path}/w/scale`, { spec: { replicas: 1 } }),
    patch('strategic', `${custom.path}/w/status`, { status: {} }),

    // Requests for tokens.
    // The default audience is that of each server.
    post(`${accounts}/default/token`, {}, { statusOnly: true }),
    put(`${accounts}/default/token`, {}),
    patch('merge', `${accounts}/default/token`, {}),
    get(`${accounts}/default/token`, { accept: 'application/yaml' }),
    token('too short', { expirationSeconds: 599 }),
    token('too long', { expirationSeconds: 2 ** 32 + 1 }),
    token('negative', { expirationSeconds: -1 }),
    token('time as text', { expirationSeconds: '600' }),
    token('another object', { boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'm' } }),
    token('a kind without a name', { boundObjectRef: { kind: 'Pod', apiVersion: 'v1' } }),
    token('an absent pod', { boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'absent' } }),
    token('an absent Secret', { boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'absent' } }),
    token('a pod of another account', {
      boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'p', uid: 'another-uid' },
    }),
    post(
      `${accounts}/default/token`,
      { spec: { boundObjectRef: { kind: 'Pod', apiVersion: 'v2', name: 'p' } } },
      { what: 'a pod of another version', statusOnly: true },
    ),
    token('a pod of another group', { boundObjectRef: { kind: 'Pod', apiVersion: 'apps/v1', name: 'p' } }),
    token('no account', {}, `${accounts}/absent/token`),
    post(`${accounts}/default/token`, { metadata: { name: 'other' }, spec: {} }, { what: 'another name' }),
    post(`${accounts}/default/token`, { metadata: { namespace: 'other' }, spec: {} }, { what: 'another namespace' }),
    post(
      `${accounts}/default/token`,
      { apiVersion: 'v1', kind: 'ServiceAccount', spec: {} },
      { what: 'a ServiceAccount' },
    ),
    post(`${accounts}/default/token?dryRun=x`, { spec: {} }),
    post(`${accounts}/default/token`, 'garbage', { what: 'garbage' }),

    // Logs.
    ...[
      'tailLines=-1',
      'tailLines=x',
      'limitBytes=0',
      'sinceSeconds=0',
      'sinceSeconds=1&sinceTime=2020-01-01T00:00:00Z',
      'sinceTime=yesterday',
      'follow=maybe',
      'previous=maybe',
      'timestamps=maybe',
      'container=c&container=d',
      'stream=Nonsense',
      'nonsense=1',
    ].map((query) => get(`${pods}/p/log?${query}`)),

    // Streams without an upgrade.
    ...['exec?command=ls', 'exec', 'exec?stdin=maybe', 'attach?stdin=1', 'portforward', 'portforward?ports=x'].flatMap(
      (query) => [get(`${pods}/p/${query}`), post(`${pods}/p/${query}`, undefined)],
    ),
    put(`${pods}/p/exec`, {}),
    del(`${pods}/p/portforward`),
    send('OPTIONS', `${pods}/p/log`),
    send('HEAD', `${sets}/r/scale`),
    post('/api/v1/namespaces/{ns}/bindings', { metadata: { name: 'absent' }, target: { kind: 'Node', name: 'n' } }),
    post('/api/v1/namespaces/{ns}/bindings', {}),
    get(`${services}/absent:web/proxy/x`),
    get(`${services}/absent:80/proxy/x`),
    get(`${pods}/a:b:c:d/proxy/`),
    get(`${pods}/p:x/proxy/`),
    put(`${custom.path}/w/scale`, {
      apiVersion: 'autoscaling/v1',
      kind: 'Scale',
      metadata: { name: 'w' },
      spec: {},
    }),
    get(`${custom.path}/w/scale`, { accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io' }),
    get(`${custom.path}/w/scale`, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' }),
    get(`${pods}/p/portforward?ports=-1`),
    get(`${pods}/p/portforward?ports=70000`),
    get(`${pods}/p/log?tailLines=`),
    get(`${pods}/p/log?tailLines=9223372036854775808`),
    get(`${pods}/p/log?sinceTime=`),
    del(`${nodes}/subresources`, undefined, { statusOnly: true }),
  ],
}
