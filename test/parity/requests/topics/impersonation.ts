// Impersonation headers.
import { get, post, type Row, type Topic } from '#test/parity/requests/row.ts'

const path = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
const asked = (what: string, headers: Record<string, string | readonly string[]>): Row =>
  post(path, { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }, { what, headers })
const alice = { 'Impersonate-User': 'alice' }

export const impersonation: Topic = {
  name: 'impersonation',
  rows: [
    asked('a user', alice),
    asked('lower case', { 'impersonate-user': 'alice' }),
    asked('a user between spaces', { 'Impersonate-User': '  alice  ' }),
    asked('an empty user', { 'Impersonate-User': '' }),
    asked('a user with a comma', { 'Impersonate-User': 'alice,bob' }),
    asked('two users', { 'Impersonate-User': ['alice', 'bob'] }),
    asked('a group', { ...alice, 'Impersonate-Group': 'dev' }),
    asked('two groups', { ...alice, 'Impersonate-Group': ['dev', 'ops'] }),
    asked('two groups in one', { ...alice, 'Impersonate-Group': 'dev, ops' }),
    asked('an empty group', { ...alice, 'Impersonate-Group': '' }),
    asked('system:authenticated', { ...alice, 'Impersonate-Group': 'system:authenticated' }),
    asked('system:unauthenticated', { ...alice, 'Impersonate-Group': 'system:unauthenticated' }),
    asked('system:masters', { ...alice, 'Impersonate-Group': 'system:masters' }),
    asked('a uid', { ...alice, 'Impersonate-Uid': 'u-1' }),
    asked('two uids', { ...alice, 'Impersonate-Uid': ['u-1', 'u-2'] }),
    asked('extra', { ...alice, 'Impersonate-Extra-Scopes': 'view' }),
    asked('extra twice', { ...alice, 'Impersonate-Extra-Scopes': ['view', 'edit'] }),
    asked('extra in upper case', { ...alice, 'Impersonate-Extra-SCOPES': 'View' }),
    asked('extra with an escaped key', { ...alice, 'Impersonate-Extra-acme.com%2fproject': 'x' }),
    asked('extra with a broken escape', { ...alice, 'Impersonate-Extra-acme%zz': 'x' }),
    asked('extra with an escaped upper case', { ...alice, 'Impersonate-Extra-%41b': 'x' }),
    asked('extra without a key', { ...alice, 'Impersonate-Extra-': 'x' }),
    asked('an empty extra', { ...alice, 'Impersonate-Extra-Scopes': '' }),
    asked('a group alone', { 'Impersonate-Group': 'dev' }),
    asked('a uid alone', { 'Impersonate-Uid': 'u-1' }),
    asked('extra alone', { 'Impersonate-Extra-Scopes': 'view' }),
    asked('without a user', { 'Impersonate-User': 'system:anonymous' }),
    asked('a group without a user', { 'Impersonate-User': 'system:anonymous', 'Impersonate-Group': 'dev' }),
    asked('a ServiceAccount', { 'Impersonate-User': 'system:serviceaccount:impersonation:default' }),
    asked('a ServiceAccount in a group', {
      'Impersonate-User': 'system:serviceaccount:impersonation:default',
      'Impersonate-Group': 'dev',
    }),
    asked('a ServiceAccount that does not exist', { 'Impersonate-User': 'system:serviceaccount:nowhere:nobody' }),
    asked('an incomplete ServiceAccount name', { 'Impersonate-User': 'system:serviceaccount:nowhere' }),
    asked('a node', { 'Impersonate-User': 'system:node:n1', 'Impersonate-Group': 'system:nodes' }),
    asked('characters outside ASCII', { 'Impersonate-User': Buffer.from('zoé').toString('latin1') }),
    asked('an unknown header', { ...alice, 'Impersonate-Nonsense': 'x' }),
    get('/api/v1/namespaces/{ns}/configmaps', { what: 'a user without rights', headers: alice }),
    get('/api/v1/namespaces/{ns}/configmaps/x', { what: 'a user without rights', headers: alice }),
    get('/api/v1/nodes', { what: 'a user without rights', headers: alice }),
    get('/apis/nonsense.example.com/v1/things', { what: 'a user without rights', headers: alice }),
    get('/metrics', { what: 'a user without rights', headers: alice }),
    get('/version', { what: 'a user without rights', headers: alice, statusOnly: true }),
    get('/api', { what: 'a user without rights', headers: alice, statusOnly: true }),
    get('/openapi/v2', { what: 'a user without rights', headers: alice, statusOnly: true }),
    get('/healthz', { what: 'without a user', headers: { 'Impersonate-User': 'system:anonymous' } }),
    get('/api', { what: 'without a user', headers: { 'Impersonate-User': 'system:anonymous' } }),
    post(
      '/api/v1/namespaces/{ns}/configmaps',
      { metadata: { name: 'x' } },
      { what: 'a user without rights', headers: alice },
    ),
    post('/api/v1/namespaces/{ns}/configmaps', '{', {
      what: 'an invalid body from a user without rights',
      headers: alice,
    }),
  ],
}
