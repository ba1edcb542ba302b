// Differences that seeded random requests to both servers once found, and similar cases.
import { del, get, patch, post, put, send, watch, type Row, type Topic } from '#test/parity/requests/row.ts'
import { widgets } from './widgets.ts'

const maps = '/api/v1/namespaces/{ns}/configmaps'
const pods = '/api/v1/namespaces/{ns}/pods'
const events = '/api/v1/namespaces/{ns}/events'
const services = '/api/v1/namespaces/{ns}/services'
const jobs = '/apis/batch/v1/namespaces/{ns}/jobs'
const budgets = '/apis/policy/v1/namespaces/{ns}/poddisruptionbudgets'
const custom = widgets('corners')

const sets = '/apis/apps/v1/namespaces/{ns}/replicasets'
const accounts = '/api/v1/namespaces/{ns}/serviceaccounts'
const setOf = (name: string): object => ({
  metadata: { name },
  spec: {
    replicas: 0,
    selector: { matchLabels: { app: 'a' } },
    template: { metadata: { labels: { app: 'a' } }, spec: { containers: [{ name: 'c', image: 'i' }] } },
  },
})
const scales: readonly (readonly [what: string, scale: object | string])[] = [
  ['unknown', { metadata: { name: 's', nonsense: 1 }, spec: { replicas: 1, more: 1 }, more: 1 }],
  ['twice', '{"metadata":{"name":"s"},"spec":{"replicas":1,"replicas":2}}'],
  ['replicas as text', { metadata: { name: 's' }, spec: { replicas: 'x' } }],
  ['a spec as text', { metadata: { name: 's' }, spec: 'x' }],
  ['metadata as text', { metadata: 'x' }],
]
const renamed = (scale: object): object => JSON.parse(JSON.stringify(scale).replace('"s"', '"w"')) as object
const unknownThere = { what: 'unknown in the object' }
const wrongThere = { what: 'wrong in the object' }

const bound = { kind: 'Node', name: 'n' }
const binding = (what: string, more: object): Row =>
  post(`${pods}/two/binding`, { metadata: { name: 'two' }, target: bound, ...more }, { what })
const eviction = (what: string, more: object): Row =>
  post(`${pods}/two/eviction`, { metadata: { name: 'two' }, ...more }, { what })
const event = (metadata: object): object => ({ metadata, involvedObject: { namespace: '{ns}', name: 'x' } })
const json = (what: string, operations: string): Row => patch('json', `${maps}/a`, operations, { what })
const widget = (what: string, metadata: object): Row => patch('merge', `${custom.path}/w`, { metadata }, { what })

const kind = { apiVersion: custom.apiVersion, kind: 'Widget' }
const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'x', uid: 'u' }
const nulls: [what: string, metadata: object][] = [
  ['an owner that is empty', { ownerReferences: [{}] }],
  ['an owner that is null', { ownerReferences: [null] }],
  ['two owners that are null', { ownerReferences: [null, null] }],
  ['an owner without a version', { ownerReferences: [{ ...owner, apiVersion: null }] }],
  ['a controller that is null', { ownerReferences: [{ ...owner, controller: null, more: 1 }] }],
  ['an owner without a version behind its slash', { ownerReferences: [{ ...owner, apiVersion: 'a/' }] }],
  ['an owner with a slash alone', { ownerReferences: [{ ...owner, apiVersion: '/' }] }],
  ['a negative generation', { generation: -1 }],
  ['a finalizer that is null', { finalizers: [null] }],
  ['a label that is null', { labels: { a: null } }],
  ['an annotation that is null', { annotations: { a: null } }],
]
const added = (metadata: object): object[] =>
  Object.entries(metadata).map(([member, value]: [string, unknown]) => ({
    op: 'add',
    path: `/metadata/${member}`,
    value,
  }))

export const corners: Topic = {
  name: 'corners',
  rows: [
    post(maps, { metadata: { name: 'a' }, data: { k: '1' } }),
    ...['7', '0', 'x'].flatMap((resourceVersion) =>
      [maps, `${maps}?dryRun=All`].map((path) =>
        post(
          path,
          { metadata: { name: `at-${resourceVersion}`, resourceVersion } },
          { what: `new at ${resourceVersion}` },
        ),
      ),
    ),

    // An object that is being deleted keeps its deletionTimestamp, and a changed grace period is reported.
    post(maps, { metadata: { name: 'held', finalizers: ['example.com/hold'] } }),
    del(`${maps}/held`),
    ...[7, 0, null].map((grace) =>
      patch('merge', `${maps}/held`, { metadata: { deletionGracePeriodSeconds: grace } }, { what: `grace ${grace}` }),
    ),
    patch('merge', `${maps}/held`, { metadata: { finalizers: null } }, { what: 'finalizers removed' }),

    // Options of pod subresources, and the choice of the container.
    post(pods, {
      metadata: { name: 'two' },
      spec: {
        automountServiceAccountToken: false,
        containers: [
          { name: 'c', image: 'i' },
          { name: 'd', image: 'i' },
        ],
      },
    }),
    get(`${pods}/two/log`),
    get(`${pods}/two/log?container=nope`),
    get(`${pods}/two/log?container=d`),
    get(`${pods}/two/attach`),
    get(`${pods}/two/exec?command=ls&container=nope`),
    get(`${pods}/two/exec?command=ls&container=c`),
    binding('another version', { kind: 'Binding', apiVersion: 'x' }),
    binding('another kind', { kind: 'X', apiVersion: 'v1' }),
    binding('a pod', { kind: 'Pod', apiVersion: 'v1' }),
    binding('another name and an empty target', { metadata: { name: 'x' }, target: {} }),
    binding('another namespace', { metadata: { name: 'two', namespace: 'other' } }),
    binding('a version alone', { apiVersion: 'v2', target: {} }),
    eviction('another kind', { kind: 'X', apiVersion: 'policy/v1' }),
    eviction('another group', { kind: 'Eviction', apiVersion: 'v1', deleteOptions: { dryRun: ['x'] } }),
    eviction('the older version', {
      kind: 'Eviction',
      apiVersion: 'policy/v1beta1',
      deleteOptions: { dryRun: ['All'] },
    }),
    eviction('another namespace', {
      metadata: { name: 'two', namespace: 'other' },
      deleteOptions: { dryRun: ['All'] },
    }),
    eviction('a list of options', { kind: 'X', apiVersion: 'v1', deleteOptions: [] }),

    // Deleting a Job warns about its pods, whether or not there are any.
    del(`${jobs}/absent`),
    del(`${jobs}/absent?propagationPolicy=Background`),
    del(`${jobs}?labelSelector=nothing`),
    del(`${jobs}?labelSelector=nothing%2C`),

    // A Service changed without its IP families.
    post(services, {
      metadata: { name: 's' },
      spec: { clusterIP: 'None', selector: { a: 'b' }, ports: [{ port: 80 }] },
    }),
    put(`${services}/s`, { metadata: { name: 's' }, spec: { clusterIP: 'None' } }, { what: 'without a selector' }),
    post(services, { metadata: { name: 'free' }, spec: { clusterIP: 'None' } }),
    put(`${services}/free`, { metadata: { name: 'free', labels: { a: 'b' } } }, { what: 'labels alone' }),

    // Empty preconditions, and resourceVersions in deletions.
    post(maps, { metadata: { name: 'p1', labels: { gone: '1' } } }),
    del(`${maps}?labelSelector=gone&resourceVersion=x`, '{}'),
    del(`${maps}?labelSelector=gone&resourceVersion=1999999999`, '{}', { what: 'at a future revision' }),
    del(`${maps}?labelSelector=gone&resourceVersion=&uid=`),
    post(maps, { metadata: { name: 'p2' } }),
    del(`${maps}/p2?resourceVersion=&uid=`),
    del(`${maps}?labelSelector=nothing`, undefined, {
      accept: 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io',
    }),
    del(`${maps}?labelSelector=nothing&limit=1`, undefined, { accept: 'text/html' }),

    // Kinds whose names are only restricted to valid path segments, and required fields of Events.
    post(maps, { metadata: { name: 'line\nfeed' } }),
    post(`${events}?dryRun=All`, event({ name: 'per%cent' })),
    post(`${events}?dryRun=All`, event({ name: 'sl/ash' }), { what: 'a slash' }),
    post(`${events}?dryRun=All`, event({ name: 'Any thing' }), { what: 'anything' }),
    post(`${budgets}?dryRun=All`, { metadata: { name: 'Any thing' }, spec: { minAvailable: 1 } }),
    post(`${budgets}?dryRun=All`, { metadata: { name: 'per%cent' }, spec: { minAvailable: 1 } }, { what: 'percent' }),
    post(events, event({ name: 'orphan' })),
    del(`${events}/orphan?propagationPolicy=Orphan`),
    get(`${events}/orphan`),
    post(events, event({ name: 'fore', finalizers: ['example.com/hold', 'foregroundDeletion'] })),
    del(`${events}/fore`, { propagationPolicy: 'Foreground' }),
    patch('merge', `${events}/fore`, { metadata: { finalizers: null } }),

    put('/api/v1/namespaces/{ns}/finalize', {
      metadata: { name: '{ns}' },
      spec: { finalizers: ['bad one', 'x/y', 'z'] },
    }),

    // Empty media type parameters, invalid patches, invalid characters.
    get(`${maps}/a`, { accept: 'application/json;as=' }),
    json('an operation that is a number', '[{"op":1,"path":"/data/k","value":"x"}]'),
    json('a path that is a number', '[{"op":"add","path":1,"value":"x"}]'),
    json('a source that is a list', '[{"op":"remove","path":"/data/absent"},{"op":"add","path":"/data/k","from":[]}]'),
    json('a byte order mark', '\ufeff[]'),
    post(maps, '\ufeff{}', { what: 'a byte order mark' }),
    post(maps, 'ü', { what: 'no JSON' }),
    post(maps, '{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"nul"},"data":{"k":"\u0000"}}', {
      what: 'a control character',
      type: 'application/yaml',
      statusOnly: true,
    }),

    // Fields that a subresource does not have, wrong types in it, and the removed field selfLink.
    post(sets, setOf('s')),
    ...['', '&fieldValidation=Strict', '&fieldValidation=Ignore'].flatMap((mode) => [
      ...scales.flatMap(([what, scale]) => [
        put(`${sets}/s/scale?dryRun=All${mode}`, scale, { what }),
        patch('merge', `${sets}/s/scale?dryRun=All${mode}`, scale, { what }),
        post(`${sets}/s/scale?dryRun=All${mode}`, scale, { what }),
      ]),
      post(`${pods}/two/eviction?dryRun=All${mode}`, { metadata: { name: 'two', nonsense: 1 }, more: 1 }, unknownThere),
      post(`${pods}/two/eviction?dryRun=All${mode}`, { metadata: { name: 'x' }, deleteOptions: 1 }, wrongThere),
      post(
        `${pods}/two/binding?dryRun=All${mode}`,
        { metadata: { name: 'x' }, more: 1, target: { a: 1 } },
        unknownThere,
      ),
      post(`${pods}/two/binding?dryRun=All${mode}`, { metadata: { name: 'x' }, target: { name: 1 } }, wrongThere),
      post(`${accounts}/a/token?dryRun=All${mode}`, { spec: { audiences: ['x'], more: 1 }, more: 1 }, unknownThere),
      post(`${accounts}/a/token?dryRun=All${mode}`, { spec: { audiences: 'x' } }, wrongThere),
      patch('merge', `${sets}/s/status?dryRun=All${mode}`, { status: { replicas: 1, more: 1 } }, unknownThere),
      post(`${maps}?dryRun=All${mode}`, { metadata: { name: 'b', selfLink: '/x' } }, { what: 'selfLink' }),
      ...(['merge', 'strategic'] as const).map((type) =>
        patch(type, `${sets}/s?dryRun=All${mode}`, { spec: { zero: 1, more: 2 }, more: 1, alpha: 1 }, unknownThere),
      ),
    ]),

    // The order of validation: numbers, then fields, then resourceVersions.
    get(`${maps}?fieldSelector=nonsense%3D1&resourceVersion=x`),
    get(`${maps}?fieldSelector=nonsense%3D1&limit=x`),
    get(`${maps}?fieldSelector=nonsense%3D1&limit=1&continue=garbage`),
    watch(`${maps}?watch=true&fieldSelector=nonsense%3D1&resourceVersion=x&timeoutSeconds=1`, 1),
    watch(`${maps}?watch=f&labelSelector=nothing&timeoutSeconds=1`, 50),
    get(`${maps}?watch=F&resourceVersionMatch=Exact`),
    send('DELETE', `${maps}/a?orphanDependents=f&dryRun=All`),

    // Patches that make a custom resource's metadata invalid, and nulls in place of values.
    ...custom.rows,
    post(custom.path, { apiVersion: custom.apiVersion, kind: 'Widget', metadata: { name: 'w' } }),
    ...['', '&fieldValidation=Strict'].flatMap((mode) =>
      scales.flatMap(([what, scale]) => {
        const named = typeof scale === 'string' ? scale.replace('"s"', '"w"') : renamed(scale)
        // Upstream's error for a PUT does not name the kind here.
        const isTaken = mode === '' && (what === 'unknown' || what === 'twice')
        return [
          ...(isTaken ? [put(`${custom.path}/w/scale?dryRun=All`, named, { what })] : []),
          patch('merge', `${custom.path}/w/scale?dryRun=All${mode}`, named, { what }),
        ]
      }),
    ),
    widget('a generation as text', { generation: 'x' }),
    widget('an annotation as object', { annotations: { x: {} } }),
    widget('finalizers as text', { finalizers: 'x' }),
    ...nulls.flatMap(([what, metadata]) => [
      post(`${maps}?dryRun=All`, { metadata: { name: 'b', ...metadata } }, { what }),
      post(`${custom.path}?dryRun=All`, { ...kind, metadata: { name: 'b', ...metadata } }, { what }),
      patch('json', `${custom.path}/w?dryRun=All`, JSON.stringify(added(metadata)), { what }),
    ]),
  ],
}
