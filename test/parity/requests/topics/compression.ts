// Compression of answers: depending on Accept-Encoding and size.
import { get, post, watch, type Row, type Topic } from '#test/parity/requests/row.ts'

const maps = '/api/v1/namespaces/{ns}/configmaps'
const large = 'x'.repeat(150_000)
const gzip = { 'Accept-Encoding': 'gzip' }
const asked = (encoding: string): Row =>
  get(`${maps}/large`, {
    what: `Accept-Encoding: ${encoding}`,
    headers: { 'Accept-Encoding': encoding },
    headersOnly: true,
  })

export const compression: Topic = {
  name: 'compression',
  rows: [
    post(maps, { metadata: { name: 'large' }, data: { large } }, { headersOnly: true }),
    post(
      maps,
      { metadata: { name: 'gzipped' }, data: { large } },
      { headers: gzip, what: 'the answer', headersOnly: true },
    ),
    post(maps, { metadata: { name: 'middle' }, data: { large: large.slice(0, 100_000) } }, { headersOnly: true }),
    post(maps, { metadata: { name: 'small' } }),
    asked('gzip'),
    asked('gzip, deflate, br'),
    asked('deflate, gzip;q=1.0'),
    asked('gzip;q=0'),
    asked('identity'),
    asked('*'),
    asked('GZIP'),
    asked('br'),
    asked('x-gzip'),
    asked(''),
    get(`${maps}/middle`, { headers: gzip, headersOnly: true, what: 'below the threshold' }),
    get(`${maps}/small`, { headers: gzip }),
    get(maps, { headers: gzip, headersOnly: true, what: 'a list' }),
    get(`${maps}?limit=1`, { headers: gzip, headersOnly: true, what: 'a page' }),
    get(maps, {
      headers: gzip,
      what: 'a large list as a small table',
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      headersOnly: true,
    }),
    get(`${maps}/large`, { headers: gzip, accept: 'application/yaml', headersOnly: true, what: 'YAML' }),
    get(`${maps}/large?pretty=true`, { headers: gzip, headersOnly: true, what: 'pretty' }),
    get(`${maps}/absent`, { headers: gzip, what: 'an error' }),
    watch(`${maps}?watch=true&timeoutSeconds=1&fieldSelector=metadata.name%3Dsmall`, 9, {
      headers: gzip,
      what: 'a watch',
    }),
  ],
}
