// Documents that clients cache: ETags, conditional requests, hashes in names.
import { get, send, type Row, type RowOptions, type Topic } from '#test/parity/requests/row.ts'
import { widgets } from './widgets.ts'

const aggregated = 'application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList'
const older = 'application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList'
const protobufV2 = 'application/com.github.proto-openapi.spec.v2@v1.0+protobuf'
const custom = widgets('conditional')
const batch = '/openapi/v3/apis/batch/v1'
const own = `/openapi/v3/apis/${custom.apiVersion}`

let count = 0
/** Reads the document, then repeats the request with its ETag in several ways. */
function kept(path: string, accept?: string): Row[] {
  const name = `kept${++count}`
  const tag = `<<${name}.etag>>`
  const ask = (what: string, etag: string, options: RowOptions = {}): Row =>
    get(path, {
      what,
      ...(accept === undefined ? {} : { accept }),
      headersOnly: true,
      ...options,
      headers: { 'If-None-Match': etag, ...options.headers },
    })
  return [
    get(path, { ...(accept === undefined ? {} : { accept }), saveHeaders: name, headersOnly: true }),
    ask('its own', tag),
    ask('another', '"0000"'),
    ask('any', '*'),
    ask('two', `"0000", ${tag}`),
    ask('a weak one', `W/${tag}`),
    ask('empty', ''),
    ask('its own, gzipped', tag, { headers: { 'Accept-Encoding': 'gzip' } }),
  ]
}

export const conditional: Topic = {
  name: 'conditional',
  rows: [
    ...custom.rows,
    get(own, { what: 'its document', until: 200, statusOnly: true }),
    ...kept('/api', aggregated),
    ...kept('/apis', aggregated),
    get('/apis', { accept: older, headersOnly: true }),
    ...kept('/openapi/v2'),
    ...kept('/openapi/v2', protobufV2),
    ...kept(batch),
    ...kept(own),
    get('/api', { what: 'no ETag of the plain form', headers: { 'If-None-Match': '*' }, statusOnly: true }),
    get('/apis', { what: 'no ETag of the plain form', headers: { 'If-None-Match': '*' }, statusOnly: true }),
    get('/apis/batch/v1', { what: 'no ETag of the plain form', headers: { 'If-None-Match': '*' } }),
    get('/version', { what: 'no ETag', headers: { 'If-None-Match': '*' }, statusOnly: true }),
    get('/api/v1/namespaces/{ns}', { what: 'no ETag of an object', headers: { 'If-None-Match': '*' } }),
    send('HEAD', batch, { headersOnly: true }),
    send('HEAD', '/openapi/v2', { headersOnly: true }),

    // With the hash.
    get('/openapi/v3', { save: 'index', headersOnly: true }),
    get('<<index.paths.apis/batch/v1.serverRelativeURL>>', { headersOnly: true, what: 'as the index names it' }),
    get(`${batch}?hash=nonsense`, { headersOnly: true }),
    get(`${own}?hash=nonsense`, { headersOnly: true }),
    get(`${batch}?hash=`, { headersOnly: true }),
    get(`${batch}?hash=nonsense&other=1`, { headersOnly: true }),
    get(`${batch}?timeout=32s`, { headersOnly: true }),
    get('/openapi/v3/apis/batch/v9?hash=nonsense', { statusOnly: true }),

    // Media types.
    ...['application/json', '*/*', 'application/yaml', 'text/plain', 'nonsense', `${protobufV2},application/json`].map(
      (accept) => get('/openapi/v2', { accept, headersOnly: true }),
    ),
    ...['application/json', '*/*', 'application/yaml', 'text/plain', 'nonsense'].map((accept) =>
      get(batch, { accept, headersOnly: true }),
    ),
    get('/openapi/v2', { headers: { 'Accept-Encoding': 'gzip' }, headersOnly: true, what: 'gzipped' }),
    get('/openapi/v2?timeout=32s', { headersOnly: true }),
    get('/apis', { accept: aggregated, headers: { 'Accept-Encoding': 'gzip' }, headersOnly: true, what: 'gzipped' }),
    get('/apis', { accept: `${aggregated};q=0.5,application/json`, headersOnly: true }),
    get('/apis', { accept: `application/json,${aggregated}`, headersOnly: true }),
    get('/apis', { accept: `${aggregated},${older},application/json`, headersOnly: true }),
    get('/apis', { accept: `${aggregated};profile=nopeer`, headersOnly: true }),
    get('/apis', { accept: 'application/json;as=APIGroupDiscoveryList', headersOnly: true }),
    get('/apis', { accept: 'application/json;g=apidiscovery.k8s.io;v=v2', headersOnly: true }),
  ],
}
