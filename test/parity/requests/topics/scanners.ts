// Requests of scanners and careless programs: paths of other programs and of removed versions, writes at the wrong
// place, odd names, headers and sizes.
import { del, get, patch, post, put, send, watch, type Row, type Topic } from '#test/parity/requests/row.ts'
import { widgets } from './widgets.ts'

const maps = '/api/v1/namespaces/{ns}/configmaps'
const nodes = '/api/v1/namespaces/{ns}/nodes'
const custom = widgets('scanners')
const customEverywhere = `/apis/${custom.apiVersion}/${custom.plural}`
const table = 'application/json;as=Table;v=v1;g=meta.k8s.io'
const partial = 'application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io'
const partialList = 'application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io'
const map = { metadata: { name: 'x' } }

/** All writes of a collection and of an object in it. */
const writes = (path: string): Row[] => [
  post(path, map),
  put(`${path}/x`, map),
  patch('merge', `${path}/x`, {}),
  patch('apply', `${path}/x?fieldManager=me`, map),
  del(`${path}/x`),
  del(path),
]
const withHeaders = (what: string, headers: Record<string, string>, path = `${maps}/a`): Row =>
  get(path, { what, headers })
const apply = (what: string, document: unknown, query = 'fieldManager=me'): Row =>
  patch('apply', `${maps}/applied?${query}`, typeof document === 'string' ? document : JSON.stringify(document), {
    what,
  })
const applied = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'applied' } }

/** Nested objects, as deep as that. */
const nested = (depth: number): string => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`

export const scanners: Topic = {
  name: 'scanners',
  rows: [
    ...custom.rows,
    post(maps, { metadata: { name: 'a', labels: { l: '1' } }, data: { k: 'v' } }),

    // Paths of other programs, and of older and newer versions of this one.
    ...[
      '/.env',
      '/.git/config',
      '/admin',
      '/actuator/health',
      '/robots.txt',
      '/wp-login.php',
      '/cgi-bin/luci',
      '/pods',
      '/spec',
      '/run/x',
      '/configz',
      '/metrics/cadvisor',
      '/stats/summary',
      '/swaggerapi',
      '/swagger-ui/',
      '/apis/extensions/v1beta1',
      '/apis/extensions/v1beta1/namespaces/{ns}/deployments',
      '/apis/apps/v1beta2/deployments',
      '/apis/policy/v1beta1/podsecuritypolicies',
      '/apis/batch/v2alpha1',
      '/apis/networking.k8s.io/v1beta1/ingresses',
      '/apis/rbac.authorization.k8s.io/v1beta1/clusterroles',
      '/apis/apiextensions.k8s.io/v1beta1/customresourcedefinitions',
      '/apis/metrics.k8s.io/v1beta1/nodes',
      '/apis/v1/pods',
      '/api/apps/v1/deployments',
      '/api/v1/deployments',
      '/apis/apps/v1/pods',
      '/api/v1/proxy/nodes/x',
      '/api/v1/proxy/namespaces/{ns}/services/x',
      '/api/v1/redirect/nodes/x',
      '/api/v1/namespaces/{ns}/pods/',
      '/apis/apps/v1/namespaces/{ns}/deployments/',
      '/api/v1/namespaces/{ns}/configmaps/a/b/c/d',
      '/apis/apps/v1/namespaces',
      '/apis/apps/v1/namespaces/{ns}',
      '/apis/apps/v1/namespaces/{ns}/',
      '/apis/authentication.k8s.io/v1/tokenreviews/x',
      '/apis/apiregistration.k8s.io/v1/nonsense',
      '/apis/apiregistration.k8s.io/v9',
    ].map((path) => get(path)),

    // Writes where nothing is, at the wrong scope, and at a version of a group.
    ...['/api/v1/nonsense', '/api/v1/namespaces/{ns}/nonsense', '/apis/nonsense.example.com/v1/things', nodes].flatMap(
      writes,
    ),
    ...writes('/api/v1/nodes/x/configmaps').slice(0, 3),
    put('/api/v1/configmaps/a', map),
    patch('merge', '/api/v1/configmaps/a', {}),
    del('/api/v1/configmaps/a'),
    post(customEverywhere, { apiVersion: custom.apiVersion, kind: 'Widget', ...map }),
    get(`${customEverywhere}/x`),
    put(`${customEverywhere}/x`, map),
    del(`${customEverywhere}/x`),
    del(customEverywhere),
    get(`/apis/${custom.apiVersion}/namespaces/{ns}/nonsense`),
    get(`/apis/${custom.apiVersion.replace('v1', 'v2')}/namespaces/{ns}/${custom.plural}`),
    get(`/apis/${custom.apiVersion}`),
    get(`/apis/${custom.apiVersion.replace('/v1', '')}`),
    put('/apis/apps', {}),
    patch('merge', '/apis/apps/v1', {}),
    del('/apis', undefined, { statusOnly: true }),
    put('/nonsense', {}),
    post('/openapi', {}),
    send('OPTIONS', '/apis', { statusOnly: true }),
    send('OPTIONS', maps, { headers: { Origin: 'https://example.com', 'Access-Control-Request-Method': 'POST' } }),
    send('PROPFIND', maps),
    send('MKCOL', `${maps}/a`),
    send('BREW', maps),

    // Names.
    ...[
      '..%2fa',
      'a%3Fb',
      '%F0%9F%98%80',
      '%5C',
      'a:b',
      '*',
      '$(id)',
      '@',
      'a,b',
      "'",
      '%22',
      '%3Cscript%3E',
      'a%0Ab',
      '-a',
      'n'.repeat(254),
      'n'.repeat(5000),
    ].flatMap((name, index) => [
      get(`${maps}/${name}`, { what: `name ${index}` }),
      del(`${maps}/${name}`, undefined, { what: `name ${index}` }),
      put(`${maps}/${name}`, { metadata: {} }, { what: `name ${index}, none in the body` }),
    ]),
    ...['%20', 'a%2fb', 'a%00', '*', '..', 'n'.repeat(300)].map((namespace, index) =>
      get(`/api/v1/namespaces/${namespace}/configmaps`, { what: `namespace ${index}` }),
    ),
    post('/api/v1/namespaces/%20/configmaps', map, { what: 'a namespace of a space' }),
    post('/api/v1/namespaces/UPPER/configmaps', map),
    get('/apis/rbac.authorization.k8s.io/v1/clusterroles/system:nonsense'),
    get('/apis/rbac.authorization.k8s.io/v1/clusterroles/a%2fb'),

    // Parameters of other verbs, and parameters twice.
    ...[
      'dryRun=All',
      'dryRun=x',
      'fieldManager=%01',
      'fieldValidation=x',
      'propagationPolicy=x',
      'gracePeriodSeconds=-1',
      'force=x',
      'watch=0&watch=1&timeoutSeconds=1',
      'limit=9223372036854775807',
      'limit=0x10',
      'limit=1e3',
      'limit=%2B1&labelSelector=nothing',
      'timeoutSeconds=9223372036854775808',
      'continue=%00',
      'resourceVersion=0x1',
      'resourceVersion=%2B1',
      'resourceVersion=1%20',
      'resourceVersion=18446744073709551616',
      'resourceVersionMatch=exact&resourceVersion=1',
      'labelSelector=%00',
      `labelSelector=${encodeURIComponent(`a in (${'x,'.repeat(2000)}x)`)}`,
      `labelSelector=${'k'.repeat(64)}`,
      'fieldSelector=metadata.name',
      'fieldSelector=metadata.name%3D%3D%3Da',
      'fieldSelector=metadata.uid%3Dx',
      'fieldSelector=metadata.creationTimestamp%3Dx',
      'fieldSelector=kind%3DConfigMap',
      'allowWatchBookmarks=x',
      'includeObject=x',
    ].map((query, index) =>
      get(`${maps}?${query}`, { what: `list ${index}`, ...(query.startsWith('limit=9') ? { statusOnly: true } : {}) }),
    ),
    ...['dryRun=x', 'fieldManager=%01', 'fieldValidation=x', 'propagationPolicy=x', 'pretty=x'].map((query) =>
      get(`${maps}/a?${query}`),
    ),
    ...['fieldManager=%7F', `fieldManager=${'%C3%A4'.repeat(128)}`, 'fieldValidation=warn', 'dryRun=All%2CAll'].flatMap(
      (query, index) => [
        post(`${maps}?${query}`, { metadata: { name: `q${index}` } }),
        put(`${maps}/a?${query}`, { metadata: { name: 'a', labels: { l: '1' } }, data: { k: 'v' } }),
        patch('apply', `${maps}/q${index}?${query}`, { ...applied, metadata: { name: `q${index}` } }),
        del(`${maps}/q${index}?${query}`),
      ],
    ),

    // Accept.
    get(maps, { accept: `${table};pretty=1` }),
    get(`${maps}?includeObject=Nonsense`, { accept: table }),
    get(`${maps}?labelSelector=l&includeObject=Object`, { accept: table }),
    get(`${maps}?labelSelector=l&includeObject=None`, { accept: table }),
    get(`${maps}?labelSelector=l&includeObject=None`, { accept: partialList }),
    get('/api', { accept: table }),
    get('/apis/apps/v1', { accept: table }),
    get('/apis/apps/v1', { accept: partial }),
    get('/version', { accept: 'nonsense', statusOnly: true }),
    get('/healthz', { accept: 'nonsense' }),
    get('/nonsense', { accept: 'nonsense' }),
    get(custom.path, { accept: 'application/json;as=PartialObjectMetadataList;v=v2;g=meta.k8s.io' }),
    get(`${custom.path}?includeObject=Nonsense`, { accept: table }),
    watch(`${maps}?watch=true&timeoutSeconds=1&labelSelector=l&includeObject=Nonsense`, 9, { accept: table }),
    watch(`${maps}?watch=true&timeoutSeconds=1&labelSelector=l&sendInitialEvents=true&resourceVersion=1`, 9),
    watch(`${maps}/a?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Db`, 9),
    watch(`${maps}/a?watch=true&timeoutSeconds=1&labelSelector=l%3D2`, 9),
    watch(`${maps}/a?watch=true&timeoutSeconds=1`, 9, { accept: table }),
    del(`${maps}?labelSelector=nothing`, undefined, { accept: partialList }),
    del(`${maps}?labelSelector=nothing&dryRun=x`),
    del(`${maps}?labelSelector=nothing&gracePeriodSeconds=-1`),
    del(`${maps}?labelSelector=nothing`, { gracePeriodSeconds: -1 }, { what: 'negative grace' }),
    del(`${maps}?labelSelector=nothing`, { kind: 'ConfigMap', apiVersion: 'v1' }, { what: 'another kind' }),
    del(`${maps}?fieldSelector=metadata.namespace%3Dother`),
    del(`${maps}?labelSelector=nothing`, 'a: b', { type: 'text/plain', what: 'text' }),
    del(`${maps}?labelSelector=nothing&watch=true`),

    // Headers.
    withHeaders('basic credentials', { Authorization: 'Basic YTpi' }),
    withHeaders('no credentials', { Authorization: '' }),
    withHeaders('headers of a proxy', { 'X-Remote-User': 'root', 'X-Remote-Group': 'system:masters' }),
    withHeaders('a range', { Range: 'bytes=0-10' }),
    withHeaders('conditional', { 'If-None-Match': '*' }),
    withHeaders('conditional by time', { 'If-Modified-Since': 'Wed, 01 Jan 2020 00:00:00 GMT' }),
    withHeaders('another encoding', { 'Accept-Encoding': 'br' }),
    withHeaders('no encoding', { 'Accept-Encoding': 'identity;q=0, *;q=0' }),
    withHeaders('forwarded', { 'X-Forwarded-For': '10.0.0.1', 'X-Forwarded-Proto': 'http' }),
    withHeaders('an origin', { Origin: 'https://example.com' }),
    withHeaders('too long an Audit-ID', { 'Audit-ID': 'a'.repeat(65) }),
    withHeaders('a large header', { 'X-Large': 'a'.repeat(8000) }),
    post(maps, { metadata: { name: 'expected' } }, { headers: { Expect: '100-continue' }, statusOnly: true }),
    post(maps, { metadata: { name: 'br' } }, { what: 'compressed', headers: { 'Content-Encoding': 'br' } }),

    // Sizes.
    post(maps, { metadata: { name: 'large' }, data: { a: 'x'.repeat(1024 * 1024 + 1) } }, { what: 'too large a map' }),
    post(maps, { metadata: { name: 'huge' }, data: { a: 'x'.repeat(3 * 1024 * 1024) } }, { what: 'too large a body' }),
    put(`${maps}/a`, { metadata: { name: 'a' }, data: { a: 'x'.repeat(3 * 1024 * 1024) } }, { what: 'too large' }),
    patch('merge', `${maps}/a`, { data: { a: 'x'.repeat(3 * 1024 * 1024) } }, { what: 'too large' }),
    del(`${maps}/a`, { a: 'x'.repeat(3 * 1024 * 1024) }, { what: 'too large options' }),
    post(`${maps}?dryRun=All`, nested(11_000), { what: 'too deep', statusOnly: true }),
    patch('merge', `${maps}/a?dryRun=All`, nested(11_000), { what: 'too deep', statusOnly: true }),
    patch(
      'json',
      `${maps}/a?dryRun=All`,
      JSON.stringify(Array(10_001).fill({ op: 'test', path: '/kind', value: 'ConfigMap' })),
      {
        what: 'too many operations',
      },
    ),
    post(`${maps}?dryRun=All`, `{"metadata":{"name":"n"},"data":{"a":${'9'.repeat(400)}}}`, { what: 'a long number' }),

    // Server-side apply.
    apply('no manager', applied, ''),
    apply('an empty manager', applied, 'fieldManager='),
    apply('no document', ''),
    apply('a list', '[]'),
    apply('two documents', 'apiVersion: v1\nkind: ConfigMap\n---\nkind: ConfigMap\n'),
    apply('no kind', { apiVersion: 'v1', metadata: { name: 'applied' } }),
    apply('no version', { kind: 'ConfigMap', metadata: { name: 'applied' } }),
    apply('another kind', { ...applied, kind: 'Secret' }),
    apply('another version', { ...applied, apiVersion: 'v2' }),
    apply('another name', { ...applied, metadata: { name: 'other' } }),
    apply('no name', { ...applied, metadata: {} }),
    apply('another namespace', { ...applied, metadata: { name: 'applied', namespace: 'other' } }),
    apply('managedFields', { ...applied, metadata: { name: 'applied', managedFields: [{ manager: 'x' }] } }),
    apply('a revision', { ...applied, metadata: { name: 'applied', resourceVersion: '1' } }),
    apply('a uid', { ...applied, metadata: { name: 'applied', uid: 'x' } }),
    apply('generateName', { ...applied, metadata: { generateName: 'applied' } }),
    apply('an unknown field', { ...applied, nonsense: 1 }),
    apply('a wrong type', { ...applied, data: { a: 1 } }),
    apply('a null', { ...applied, data: null }),
    patch('apply', `${custom.path}/absent/status?fieldManager=me`, {
      ...{ apiVersion: custom.apiVersion, kind: 'Widget', metadata: { name: 'absent' }, status: { phase: 'x' } },
    }),
    get(`${maps}/applied`),
  ],
}
