// Watches: their start, events, media types and end.
import { del, get, patch, post, send, watch, type Row, type Topic } from '#test/parity/requests/row.ts'
import { widgets } from './widgets.ts'

const maps = '/api/v1/namespaces/{ns}/configmaps'
const only = 'labelSelector=w'
const custom = widgets('watches')
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'

/** A watch that is refused, or ends by its timeout after one second. */
const short = (query: string, options = {}): Row => watch(`${maps}?${only}&timeoutSeconds=1&${query}`, 50, options)

const future = '1999999999'

export const watches: Topic = {
  name: 'watches',
  rows: [
    post(maps, { metadata: { name: 'first', labels: { w: 'a' } }, data: { v: '1' } }, { save: 'first' }),
    post(maps, { metadata: { name: 'second', labels: { w: 'b' } } }, { save: 'second' }),
    ...custom.rows,

    // Start positions; the server ends these watches.
    short('watch=true'),
    short('watch=1'),
    short('watch='),
    short('watch=garbage'),
    short('watch=True'),
    short('watch=true&resourceVersion=0'),
    short('watch=true&resourceVersion=<<second.metadata.resourceVersion>>'),
    short('watch=true&resourceVersion=<<first.metadata.resourceVersion>>'),
    short(`watch=true&resourceVersion=${future}`),
    short('watch=true&resourceVersion=abc'),
    short('watch=true&resourceVersion=-1'),
    short('watch=true&allowWatchBookmarks=true'),
    short('watch=true&allowWatchBookmarks=true&resourceVersion=<<second.metadata.resourceVersion>>'),
    short('watch=true&allowWatchBookmarks=garbage'),
    short('watch=true&resourceVersionMatch=Exact'),
    short('watch=true&resourceVersionMatch=NotOlderThan'),
    short('watch=true&resourceVersionMatch=NotOlderThan&resourceVersion=0'),
    short('watch=true&limit=1'),
    short('watch=true&limit=abc'),
    short('watch=true&continue=abc'),
    short('watch=true&limit=1&continue=abc'),
    short('watch=true&fieldSelector=metadata.name%3Dfirst'),
    short('watch=true&fieldSelector=data.v%3D1'),
    short('watch=true&fieldSelector=%3D'),
    watch(`${maps}?watch=true&labelSelector=%3D%3D`, 1),
    watch(`${maps}?watch=true&timeoutSeconds=abc`, 1),
    watch(`${maps}/first?watch=true&timeoutSeconds=1`, 9, { what: 'of one object' }),
    watch(`${maps}/absent?watch=true&timeoutSeconds=1`, 9, { what: 'of no object' }),
    watch('/api/v1/namespaces/no-such-namespace/configmaps?watch=true&timeoutSeconds=1', 9),
    watch('/api/v1/namespaces/{ns}/nonsense?watch=true&timeoutSeconds=1', 9),
    watch('/apis/nonsense.example.com/v1/things?watch=true', 9),
    watch(`/api/v1/watch/namespaces/{ns}/configmaps?${only}&timeoutSeconds=1`, 50, {
      what: 'by the deprecated watch path',
    }),
    watch(`/api/v1/watch/namespaces/{ns}/configmaps/first?timeoutSeconds=1`, 50, {
      what: 'by the deprecated watch path',
    }),
    watch(`/api/v1/watch/configmaps?${only}&timeoutSeconds=1`, 50, { what: 'by the deprecated watch path' }),
    watch(`/apis/apps/v1/watch/namespaces/{ns}/deployments?timeoutSeconds=1`, 50, {
      what: 'by the deprecated watch path',
    }),
    watch(`/api/v1/watch/namespaces/{ns}?timeoutSeconds=1`, 50, { what: 'by the deprecated watch path' }),
    send('POST', '/api/v1/watch/namespaces/{ns}/configmaps', { body: {} }),
    watch('/api/v1/watch/nonsense?timeoutSeconds=1', 50),
    watch(`${custom.path}?watch=true&timeoutSeconds=1`, 50, { what: 'of custom resources' }),
    watch(`/apis/${custom.apiVersion}/watch/namespaces/{ns}/${custom.plural}?timeoutSeconds=1`, 50, {
      what: 'by the deprecated watch path',
    }),

    // Streamed lists.
    short('watch=true&sendInitialEvents=true'),
    short('watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan'),
    short('watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'),
    short(
      'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=0',
    ),
    short(
      'watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=<<second.metadata.resourceVersion>>',
    ),
    short(
      `watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion=${future}`,
    ),
    short('watch=true&sendInitialEvents=true&resourceVersionMatch=Exact&allowWatchBookmarks=true'),
    short('watch=true&sendInitialEvents=false'),
    short('watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan'),
    short('watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true'),
    short('watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&resourceVersion=0'),
    short('watch=true&sendInitialEvents=garbage'),
    short('watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true', {
      accept: table,
    }),
    short('watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true', {
      accept: partial,
    }),

    // Media types.
    short('watch=true', { accept: table }),
    short('watch=true', { accept: `${table},application/json` }),
    short('watch=true&includeObject=Object', { accept: table }),
    short('watch=true&includeObject=None', { accept: table }),
    short('watch=true', { accept: partial }),
    short('watch=true', { accept: 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io' }),
    short('watch=true', { accept: 'application/json;stream=watch' }),
    short('watch=true', { accept: 'application/yaml' }),
    short('watch=true', { accept: '*/*' }),
    short('watch=true', { accept: 'nonsense' }),
    short('watch=true', { accept: 'application/vnd.kubernetes.protobuf;stream=watch,application/json' }),
    short('watch=true&pretty=true'),

    // Each of these watches receives the writes below, and the last write ends it.
    watch(`${maps}?watch=true&labelSelector=s&timeoutSeconds=60`, 8, { what: 'writes' }),
    watch(`${maps}?watch=true&labelSelector=s%3D1&timeoutSeconds=60`, 6, { what: 'a label is added and removed' }),
    watch(`${maps}?watch=true&labelSelector=s%3D2&timeoutSeconds=60`, 4, { what: 'another label' }),
    watch(`${maps}?watch=true&labelSelector=s,!x&timeoutSeconds=60`, 6, { what: 'an invalid label' }),
    watch(`${maps}?watch=true&fieldSelector=metadata.name%3Dobject&timeoutSeconds=60`, 7, { what: 'one name' }),
    watch(`${maps}?watch=true&labelSelector=s&timeoutSeconds=60`, 8, { what: 'writes', accept: table }),
    watch(`${maps}?watch=true&labelSelector=s%3D1&timeoutSeconds=60`, 6, {
      what: 'a label is added and removed',
      accept: partial,
    }),
    watch('/api/v1/namespaces/{ns}/secrets?watch=true&fieldSelector=type%3Dexample.com%2Fa&timeoutSeconds=60', 3, {
      what: 'a field',
    }),
    watch(`${custom.path}?watch=true&fieldSelector=spec.color%3Dred&timeoutSeconds=60`, 5, {
      what: 'a field of a custom resource',
    }),
    watch(`${custom.path}?watch=true&timeoutSeconds=60`, 6, { what: 'a custom resource', accept: table }),
    post(maps, { metadata: { name: 'object', labels: { s: '1' } } }, { save: 'object' }),
    patch('merge', `${maps}/object`, { data: { a: '1' } }),
    patch('merge', `${maps}/object`, { data: { a: '1' } }, { what: 'nothing new' }),
    patch('merge', `${maps}/object?dryRun=All`, { data: { a: '7' } }),
    patch('merge', `${maps}/object`, { metadata: { labels: { s: '2' } } }),
    patch('merge', `${maps}/object`, { metadata: { labels: { s: '1', x: 'y' } } }),
    patch('merge', `${maps}/object`, { metadata: { labels: { x: null }, finalizers: ['example.com/hold'] } }),
    del(`${maps}/object`),
    patch('merge', `${maps}/object`, { metadata: { finalizers: null } }),
    post(maps, { metadata: { name: 'last', labels: { s: '1' } } }),
    patch('merge', `${maps}/last`, { metadata: { labels: { s: '2' } } }),
    post('/api/v1/namespaces/{ns}/secrets', { metadata: { name: 'a' }, type: 'example.com/a' }),
    patch('merge', '/api/v1/namespaces/{ns}/secrets/a', { data: { x: 'eA==' } }),
    del('/api/v1/namespaces/{ns}/secrets/a'),
    post(custom.path, {
      apiVersion: custom.apiVersion,
      kind: 'Widget',
      metadata: { name: 'w' },
      spec: { color: 'red' },
    }),
    patch('merge', `${custom.path}/w`, { spec: { color: 'blue' } }),
    patch('merge', `${custom.path}/w`, { spec: { color: 'red' } }, { what: 'changed back to red' }),
    patch('merge', `${custom.path}/w/status`, { status: { phase: 'x' } }),
    del(`${custom.path}/w`),
    post(custom.path, {
      apiVersion: custom.apiVersion,
      kind: 'Widget',
      metadata: { name: 'w2' },
      spec: { color: 'red' },
    }),

    // From an earlier revision: all events again, once.
    watch(
      `${maps}?watch=true&labelSelector=s&resourceVersion=<<object.metadata.resourceVersion>>&timeoutSeconds=1`,
      50,
      { what: 'from a revision' },
    ),
    watch(
      `${maps}?watch=true&labelSelector=s%3D1&resourceVersion=<<object.metadata.resourceVersion>>&timeoutSeconds=1`,
      50,
      { what: 'from a revision' },
    ),
    watch(`${maps}?watch=true&resourceVersion=1&timeoutSeconds=1`, 1, { what: 'from a very old revision' }),
    get(`${maps}?labelSelector=s`),
  ],
}
