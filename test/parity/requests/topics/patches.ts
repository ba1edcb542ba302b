// PATCH of every type: invalid documents, patches that do not apply, and the fields that a patch may change.
import { get, patch, patchTypes, post, put, send, type Row, type Topic } from '#test/parity/requests/row.ts'
import { widgets } from './widgets.ts'

const maps = '/api/v1/namespaces/{ns}/configmaps'
const sets = '/apis/apps/v1/namespaces/{ns}/replicasets'
const custom = widgets('patches')

const kinds = ['json', 'merge', 'strategic'] as const
type Kind = (typeof kinds)[number]

const json = (what: string, operations: unknown, path = `${maps}/a`): Row =>
  patch('json', path, JSON.stringify(operations), { what })
const merge = (what: string, document: unknown, path = `${maps}/a`): Row =>
  patch('merge', path, JSON.stringify(document), { what })
const strategic = (what: string, document: unknown, path = `${sets}/d`): Row =>
  patch('strategic', path, JSON.stringify(document), { what })

/** A change of metadata, as a document of the given patch type. */
const meta = (kind: Kind, member: string, value: unknown): string =>
  JSON.stringify(
    kind === 'json' ? [{ op: 'replace', path: `/metadata/${member}`, value }] : { metadata: { [member]: value } },
  )

const forAll = (make: (kind: Kind) => Row[]): Row[] => kinds.flatMap(make)

const containers = (more: object): object => ({ spec: { template: { spec: { containers: [more] } } } })

export const patches: Topic = {
  name: 'patches',
  rows: [
    post(maps, { metadata: { name: 'a', labels: { l: '1' } }, data: { k: '1', gone: 'x' } }, { save: 'a' }),
    // Of every patch type.
    ...forAll((kind) => {
      const empty = kind === 'json' ? '[]' : '{}'
      return [
        patch(kind, `${maps}/absent`, empty),
        patch(kind, `${maps}/a`, empty, { what: 'nothing' }),
        patch(kind, `${maps}/a`, '', { what: 'an empty body' }),
        patch(kind, `${maps}/a`, '{', { what: 'an incomplete document' }),
        patch(kind, `${maps}/a`, 'null', { what: 'null' }),
        patch(kind, `${maps}/a`, '"x"', { what: 'a text' }),
        patch(kind, `${maps}/a`, kind === 'json' ? '{}' : '[]', { what: 'a document of another patch type' }),
        patch(kind, `${maps}/a`, meta(kind, 'name', 'b'), { what: 'the name' }),
        patch(kind, `${maps}/a`, meta(kind, 'namespace', 'elsewhere'), { what: 'the namespace' }),
        patch(kind, `${maps}/a`, meta(kind, 'uid', '11111111-2222-3333-4444-555555555555'), { what: 'the uid' }),
        patch(kind, `${maps}/a`, meta(kind, 'uid', '<<a.metadata.uid>>'), { what: 'the uid it has' }),
        patch(kind, `${maps}/a`, meta(kind, 'resourceVersion', '1'), { what: 'a stale revision' }),
        patch(kind, `${maps}/a`, meta(kind, 'resourceVersion', ''), { what: 'an empty revision' }),
        patch(kind, `${maps}/a`, meta(kind, 'resourceVersion', 'abc'), { what: 'a garbage revision' }),
        patch(kind, `${maps}/a`, meta(kind, 'resourceVersion', '0'), { what: 'revision 0' }),
        patch(kind, `${maps}/a`, meta(kind, 'creationTimestamp', '2001-01-01T00:00:00Z'), { what: 'the time' }),
        patch(kind, `${maps}/a`, meta(kind, 'creationTimestamp', 'x'), { what: 'a garbage time' }),
        patch(kind, `${maps}/a`, meta(kind, 'labels', { l: kind }), { what: 'labels' }),
        patch(kind, `${maps}/a`, meta(kind, 'labels', null), { what: 'labels null' }),
        patch(kind, `${maps}/a`, meta(kind, 'labels', { 'a b': 'x' }), { what: 'a bad label' }),
        patch(kind, `${maps}/a`, meta(kind, 'labels', { n: 1 }), { what: 'a label that is a number' }),
        patch(kind, `${maps}/a`, meta(kind, 'labels', 'x'), { what: 'labels as text' }),
        patch(kind, `${maps}/a`, meta(kind, 'deletionTimestamp', '2001-01-01T00:00:00Z'), { what: 'a deletion' }),
        patch(
          kind,
          `${maps}/a`,
          kind === 'json' ? '[{"op":"replace","path":"/kind","value":"Secret"}]' : '{"kind":"Secret"}',
          { what: 'the kind' },
        ),
        patch(
          kind,
          `${maps}/a`,
          kind === 'json' ? '[{"op":"replace","path":"/apiVersion","value":"v2"}]' : '{"apiVersion":"v2"}',
          { what: 'the version' },
        ),
        patch(kind, `${maps}/a`, kind === 'json' ? '[{"op":"replace","path":"/data","value":null}]' : '{"data":null}', {
          what: 'data null',
        }),
        patch(
          kind,
          `${maps}/a`,
          kind === 'json' ? '[{"op":"add","path":"/data","value":{"k":"1"}}]' : '{"data":{"k":"1"}}',
          { what: 'data' },
        ),
        patch(
          kind,
          `${maps}/a`,
          kind === 'json' ? '[{"op":"add","path":"/data","value":{"k":1}}]' : '{"data":{"k":1}}',
          { what: 'data that is a number' },
        ),
        patch(kind, `${maps}/a?dryRun=All`, meta(kind, 'labels', { dry: 'run' })),
        patch(kind, `${maps}/a?dryRun=garbage`, meta(kind, 'labels', { dry: 'run' })),
        patch(kind, `${maps}/a?force=true`, meta(kind, 'labels', { dry: 'run' })),
        patch(kind, `${maps}/a?fieldManager=me`, meta(kind, 'labels', { dry: 'run' })),
        patch(kind, `${maps}/a?fieldValidation=Garbage`, meta(kind, 'labels', { dry: 'run' })),
        patch(kind, `${maps}/a/status`, empty),
        patch(kind, maps, empty, { what: 'a collection' }),
        get(`${maps}/a`, { what: `after ${kind}` }),
      ]
    }),
    send('PATCH', `${maps}/a`, { body: '{}', what: 'no type' }),
    send('PATCH', `${maps}/a`, { body: '{}', type: 'application/json' }),
    send('PATCH', `${maps}/a`, { body: '{}', type: 'application/yaml' }),
    send('PATCH', `${maps}/a`, { body: '{}', type: 'nonsense' }),
    send('PATCH', `${maps}/a`, { body: '{}', type: 'application/merge-patch+json; charset=utf-8' }),
    send('PATCH', `${maps}/a`, { body: '{}', type: 'Application/Merge-Patch+JSON' }),
    send('PATCH', `${maps}/a`, { body: '{}', type: 'application/merge-patch+yaml' }),
    send('PATCH', `${maps}/a`, { body: '{}', type: patchTypes.merge, accept: 'nonsense' }),
    send('PATCH', `${maps}/a`, {
      body: '{}',
      type: patchTypes.merge,
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
    }),
    send('PATCH', `${maps}/a`, { body: 'data: {y: "1"}', type: patchTypes.merge, what: 'YAML' }),

    // JSON patch.
    json('add', [{ op: 'add', path: '/data/new', value: 'x' }]),
    json('add to an absent path', [{ op: 'add', path: '/nothing/new', value: 'x' }]),
    json('add an unknown field', [{ op: 'add', path: '/nothing', value: 'x' }]),
    json('replace', [{ op: 'replace', path: '/data/new', value: 'y' }]),
    json('replace an absent path', [{ op: 'replace', path: '/data/absent', value: 'y' }]),
    json('remove', [{ op: 'remove', path: '/data/new' }]),
    json('remove an absent path', [{ op: 'remove', path: '/data/absent' }]),
    json('a test that holds', [{ op: 'test', path: '/data/k', value: '1' }]),
    json('a test that fails', [
      { op: 'test', path: '/data/k', value: '2' },
      { op: 'remove', path: '/data/k' },
    ]),
    json('a test of an absent path', [{ op: 'test', path: '/data/absent', value: '2' }]),
    json('a test for null', [{ op: 'test', path: '/data/absent', value: null }]),
    json('a test of the revision', [{ op: 'test', path: '/metadata/resourceVersion', value: '1' }]),
    json('a test of the uid', [{ op: 'test', path: '/metadata/uid', value: '<<a.metadata.uid>>' }]),
    json('move', [{ op: 'move', from: '/data/k', path: '/data/m' }]),
    json('copy', [{ op: 'copy', from: '/data/m', path: '/data/k' }]),
    json('move from an absent path', [{ op: 'move', from: '/data/absent', path: '/data/x' }]),
    json('an unknown operation', [{ op: 'frobnicate', path: '/data/x' }]),
    json('no operation', [{ path: '/data/x' }]),
    json('no path', [{ op: 'add', value: 'x' }]),
    json('a path without a slash', [{ op: 'add', path: 'data/x', value: 'x' }]),
    json('no value', [{ op: 'add', path: '/data/x' }]),
    json('a string for an operation', ['x']),
    json('an escaped path', [
      { op: 'add', path: '/metadata/annotations', value: {} },
      { op: 'add', path: '/metadata/annotations/example.com~1a~0b', value: 'x' },
    ]),
    json('the whole document', [
      { op: 'replace', path: '', value: { kind: 'ConfigMap', apiVersion: 'v1', metadata: { name: 'a' } } },
    ]),
    json('a string for the document', [{ op: 'replace', path: '', value: 'x' }]),
    json('finalizers', [{ op: 'add', path: '/metadata/finalizers', value: ['example.com/a'] }]),
    json('a second finalizer', [{ op: 'add', path: '/metadata/finalizers/-', value: 'example.com/b' }]),
    json('a finalizer at an index', [{ op: 'add', path: '/metadata/finalizers/0', value: 'example.com/c' }]),
    json('a finalizer beyond the end', [{ op: 'add', path: '/metadata/finalizers/9', value: 'example.com/d' }]),
    json('a finalizer removed', [{ op: 'remove', path: '/metadata/finalizers/1' }]),
    json('the last one removed', [{ op: 'remove', path: '/metadata/finalizers/-1' }]),
    json(
      'too many operations',
      Array.from({ length: 10_001 }, () => ({ op: 'test', path: '/kind', value: 'ConfigMap' })),
    ),

    // Merge patch.
    merge('a null deletes', { data: { k: null } }),
    merge('null for an absent field', { data: { absent: null } }),
    merge('a deep new object', { metadata: { annotations: { a: 'b', c: null } } }),
    merge('a list replaces', { metadata: { finalizers: ['example.com/z'] } }),
    merge('an unknown field', { nothing: 'x' }),
    merge('an old revision', {
      metadata: { resourceVersion: '<<a.metadata.resourceVersion>>' },
      data: { never: '1' },
    }),
    merge('no finalizers', { metadata: { finalizers: null } }),

    // Strategic merge patch.
    post(sets, {
      metadata: { name: 'd' },
      spec: {
        replicas: 0,
        selector: { matchLabels: { app: 'd' } },
        template: {
          metadata: { labels: { app: 'd' } },
          spec: {
            containers: [
              {
                name: 'one',
                image: 'a',
                env: [
                  { name: 'A', value: '1' },
                  { name: 'B', value: '2' },
                ],
                ports: [{ containerPort: 80 }],
              },
              { name: 'two', image: 'b', args: ['x', 'y'] },
            ],
            tolerations: [{ key: 'k', operator: 'Exists' }],
            volumes: [{ name: 'v', emptyDir: {} }],
          },
        },
      },
    }),
    strategic('one container', containers({ name: 'two', image: 'c' })),
    strategic('a new container', containers({ name: 'three', image: 'd' })),
    strategic('a container without its name', containers({ image: 'e' })),
    strategic('delete a container', containers({ $patch: 'delete', name: 'three' })),
    strategic('delete an absent item', containers({ $patch: 'delete', name: 'absent' })),
    strategic(
      'an env',
      containers({
        name: 'one',
        env: [
          { name: 'B', value: '3' },
          { name: 'C', value: '4' },
        ],
      }),
    ),
    strategic('an env deleted', containers({ name: 'one', env: [{ name: 'B', $patch: 'delete' }] })),
    strategic('env replaced', containers({ name: 'one', env: [{ $patch: 'replace' }, { name: 'Z', value: '0' }] })),
    strategic('env null', containers({ name: 'one', env: null })),
    strategic('args: a list without a key', containers({ name: 'two', args: ['z'] })),
    strategic('order', { spec: { template: { spec: { $setElementOrder_containers: [] } } } }),
    strategic('element order', {
      spec: {
        template: {
          spec: {
            '$setElementOrder/containers': [{ name: 'two' }, { name: 'one' }],
            containers: [{ name: 'one', image: 'f' }],
          },
        },
      },
    }),
    strategic('element order without an item', {
      spec: {
        template: {
          spec: { '$setElementOrder/containers': [{ name: 'two' }], containers: [{ name: 'one', image: 'g' }] },
        },
      },
    }),
    strategic('replace an object', {
      spec: { template: { metadata: { $patch: 'replace', labels: { app: 'd', x: 'y' } } } },
    }),
    strategic('delete an object', { spec: { template: { spec: { securityContext: { $patch: 'delete' } } } } }),
    strategic('merge an object', { spec: { template: { metadata: { $patch: 'merge', labels: { z: 'z' } } } } }),
    strategic('an unknown directive', { spec: { template: { metadata: { $patch: 'nonsense' } } } }),
    strategic('a directive that is not a string', { spec: { template: { metadata: { $patch: 7 } } } }),
    strategic('finalizers are merged', { metadata: { finalizers: ['example.com/a'] } }),
    strategic('finalizers, another', { metadata: { finalizers: ['example.com/b'] } }),
    strategic('delete from primitive list', { metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/a'] } }),
    strategic('delete all from primitive list', {
      metadata: { '$deleteFromPrimitiveList/finalizers': ['example.com/b', 'example.com/absent'] },
    }),
    strategic('tolerations are replaced', {
      spec: { template: { spec: { tolerations: [{ key: 'l', operator: 'Exists' }] } } },
    }),
    strategic('a volume retyped', {
      spec: {
        template: { spec: { volumes: [{ name: 'v', $retainKeys: ['name', 'configMap'], configMap: { name: 'x' } }] } },
      },
    }),
    strategic('a list for an object', { spec: { template: [] } }),
    strategic('an object for a list', { spec: { template: { spec: { containers: {} } } } }),
    strategic('a text for a number', { spec: { replicas: 'x' } }),
    strategic('an unknown field', { spec: { nonsense: 1 } }),
    strategic('owners by uid', {
      metadata: { ownerReferences: [{ apiVersion: 'v1', kind: 'ConfigMap', name: 'a', uid: '<<a.metadata.uid>>' }] },
    }),
    strategic('an owner deleted', { metadata: { ownerReferences: [{ $patch: 'delete', uid: '<<a.metadata.uid>>' }] } }),
    strategic('status by the main endpoint', { status: { replicas: 5 } }),
    strategic(
      'status',
      { status: { replicas: 5, conditions: [{ type: 'Available', status: 'True' }] } },
      `${sets}/d/status`,
    ),
    strategic('a condition', { status: { conditions: [{ type: 'Progressing', status: 'True' }] } }, `${sets}/d/status`),
    strategic('spec by status', { spec: { replicas: 9 } }, `${sets}/d/status`),
    json('status', [{ op: 'replace', path: '/status/replicas', value: 6 }], `${sets}/d/status`),
    merge('scale', { spec: { replicas: 4 } }, `${sets}/d/scale`),
    json('scale', [{ op: 'replace', path: '/spec/replicas', value: 5 }], `${sets}/d/scale`),
    strategic('scale', { spec: { replicas: 6 } }, `${sets}/d/scale`),
    merge('scale to an empty object', { spec: { replicas: null } }, `${sets}/d/scale`),
    merge('scale below zero', { spec: { replicas: -4 } }, `${sets}/d/scale`),
    merge('scale to a string', { spec: { replicas: 'x' } }, `${sets}/d/scale`),
    merge('scale under another name', { metadata: { name: 'e' } }, `${sets}/d/scale`),
    merge('scale of an absent object', { spec: { replicas: 1 } }, `${sets}/absent/scale`),
    get(`${sets}/d`),

    // Custom resources.
    ...custom.rows,
    post(
      custom.path,
      { apiVersion: custom.apiVersion, kind: 'Widget', metadata: { name: 'w' }, spec: { color: 'red', parts: ['a'] } },
      { save: 'w' },
    ),
    json('a widget', [{ op: 'replace', path: '/spec/color', value: 'blue' }], `${custom.path}/w`),
    merge('a widget', { spec: { color: 'green' } }, `${custom.path}/w`),
    merge('a widget, nothing new', { spec: { color: 'green' } }, `${custom.path}/w`),
    merge('a widget, null for a default', { spec: { size: null } }, `${custom.path}/w`),
    merge('a widget, a wrong type', { spec: { size: 'x' } }, `${custom.path}/w`),
    merge('a widget, an unknown field', { spec: { nonsense: 'x' } }, `${custom.path}/w`),
    merge(
      'a widget, a stale revision',
      { metadata: { resourceVersion: '<<w.metadata.resourceVersion>>' }, spec: { size: 4 } },
      `${custom.path}/w`,
    ),
    merge('a widget, no revision', { metadata: { resourceVersion: null }, spec: { size: 4 } }, `${custom.path}/w`),
    merge('a widget, its kind', { kind: 'Gadget' }, `${custom.path}/w`),
    merge('a widget, its name', { metadata: { name: 'v' } }, `${custom.path}/w`),
    merge('a widget, status by the main endpoint', { status: { phase: 'x' } }, `${custom.path}/w`),
    merge('a widget, status', { status: { phase: 'x' } }, `${custom.path}/w/status`),
    merge('a widget, spec by status', { spec: { color: 'x' } }, `${custom.path}/w/status`),
    merge('a widget, scale', { spec: { replicas: 4 } }, `${custom.path}/w/scale`),
    strategic('a widget', { spec: { color: 'x' } }, `${custom.path}/w`),
    merge('a widget that does not exist', {}, `${custom.path}/absent`),
    send('PATCH', `${custom.path}/w`, { body: '{}', type: 'nonsense' }),
    put(`${custom.path}/w/scale`, {}, { what: 'nothing' }),
  ],
}
