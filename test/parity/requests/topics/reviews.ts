// The review APIs: who sends the review, its subject and action, and the answer.
import { get, post, put, send, type Row, type RowOptions, type Topic } from '#test/parity/requests/row.ts'

const authorization = '/apis/authorization.k8s.io/v1'
const authentication = '/apis/authentication.k8s.io/v1'
const ask = (group: string, resource: string, kind: string, spec: unknown, options: RowOptions = {}): Row =>
  post(`${group}/${resource}`, { apiVersion: group.slice(6), kind, ...(spec === undefined ? {} : { spec }) }, options)
const self = (spec: unknown, options: RowOptions = {}): Row =>
  ask(authorization, 'selfsubjectaccessreviews', 'SelfSubjectAccessReview', spec, options)
const other = (spec: unknown, options: RowOptions = {}): Row =>
  ask(authorization, 'subjectaccessreviews', 'SubjectAccessReview', spec, options)
const local = (spec: unknown, options: RowOptions = {}): Row =>
  ask(authorization, 'namespaces/{ns}/localsubjectaccessreviews', 'LocalSubjectAccessReview', spec, options)
const rules = (spec: unknown, options: RowOptions = {}): Row =>
  ask(authorization, 'selfsubjectrulesreviews', 'SelfSubjectRulesReview', spec, options)
const whoami = (options: RowOptions = {}): Row =>
  ask(authentication, 'selfsubjectreviews', 'SelfSubjectReview', undefined, options)
const token = (spec: unknown, options: RowOptions = {}): Row =>
  ask(authentication, 'tokenreviews', 'TokenReview', spec, options)

const pods = { verb: 'list', resource: 'pods', namespace: 'default' }
const of = (attributes: object): object => ({ resourceAttributes: { ...pods, ...attributes } })
const requirement = (key: string, operator: string, values?: readonly string[]): object => ({
  requirements: [{ key, operator, ...(values === undefined ? {} : { values }) }],
})

const selectors: readonly [string, object][] = [
  ['a raw label selector', { labelSelector: { rawSelector: 'a=b,c!=d' } }],
  ['an invalid raw label selector', { labelSelector: { rawSelector: 'a=(' } }],
  ['an empty label selector', { labelSelector: {} }],
  ['label requirements', { labelSelector: requirement('a', 'In', ['b', 'c']) }],
  ['a label that exists', { labelSelector: requirement('a', 'Exists') }],
  ['a label that exists, with a value', { labelSelector: requirement('a', 'Exists', ['b']) }],
  ['a label in no values', { labelSelector: requirement('a', 'In', []) }],
  ['an unknown operator of a label', { labelSelector: requirement('a', 'Above', ['1']) }],
  ['an invalid label key', { labelSelector: requirement('-/-', 'In', ['b']) }],
  ['no label key', { labelSelector: requirement('', 'In', ['b']) }],
  ['both forms for labels', { labelSelector: { rawSelector: 'a=b', ...requirement('a', 'In', ['b']) } }],
  ['a raw field selector', { fieldSelector: { rawSelector: 'spec.nodeName=x' } }],
  ['an invalid raw field selector', { fieldSelector: { rawSelector: 'spec.nodeName' } }],
  ['field requirements', { fieldSelector: requirement('spec.nodeName', 'In', ['x']) }],
  ['a field in two values', { fieldSelector: requirement('spec.nodeName', 'In', ['x', 'y']) }],
  ['a field not in', { fieldSelector: requirement('spec.nodeName', 'NotIn', ['x']) }],
  ['a field that exists', { fieldSelector: requirement('spec.nodeName', 'Exists') }],
  ['a field without a value', { fieldSelector: requirement('spec.nodeName', 'In') }],
  ['both forms for fields', { fieldSelector: { rawSelector: 'a=b', ...requirement('a', 'In', ['b']) } }],
  ['both kinds of selectors', { fieldSelector: { rawSelector: 'a=b' }, labelSelector: { rawSelector: 'c=d' } }],
]

const as = (headers: Record<string, string>, what: string): RowOptions => ({ headers, what })

export const reviews: Topic = {
  name: 'reviews',
  rows: [
    ...selectors.flatMap(([what, more]) => [
      self(of(more), { what }),
      other({ user: 'alice', ...of(more) }, { what }),
      local({ user: 'alice', ...of({ namespace: 'reviews', ...more }) }, { what }),
    ]),
    self(of({}), { what: 'plain' }),
    self(of({ namespace: undefined }), { what: 'everywhere' }),
    self(of({ name: 'x', subresource: 'log', version: 'v1' }), { what: 'a subresource' }),
    self(of({ group: '*', resource: '*', verb: '*', namespace: undefined }), { what: 'everything' }),
    self({ nonResourceAttributes: { path: '/healthz', verb: 'get' } }, { what: 'a path' }),
    self({ nonResourceAttributes: { path: '/healthz' } }, { what: 'a path without a verb' }),
    self({ nonResourceAttributes: {} }, { what: 'no path' }),
    self({}, { what: 'nothing' }),
    self(undefined, { what: 'no spec' }),
    self({ ...of({}), nonResourceAttributes: { path: '/' } }, { what: 'both' }),
    self({ resourceAttributes: 'x' }, { what: 'a text' }),
    self({ ...of({}), user: 'alice' }, { what: 'of another user' }),
    self(of({ unknown: 'x' }), { what: 'an unknown field' }),
    post(
      `${authorization}/selfsubjectaccessreviews?fieldValidation=Strict`,
      { spec: of({ unknown: 'x' }) },
      { what: 'an unknown field' },
    ),
    post(`${authorization}/selfsubjectaccessreviews?dryRun=All`, { spec: of({}) }),
    post(`${authorization}/selfsubjectaccessreviews?pretty=true`, { spec: of({}) }),
    post(
      `${authorization}/selfsubjectaccessreviews`,
      { spec: of({}) },
      { what: 'as a table', accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' },
    ),
    post(
      `${authorization}/selfsubjectaccessreviews`,
      { spec: of({}) },
      { what: 'as YAML', accept: 'application/yaml' },
    ),
    post(
      `${authorization}/selfsubjectaccessreviews`,
      { kind: 'Pod', apiVersion: 'v1', spec: of({}) },
      { what: 'another kind' },
    ),
    post(`${authorization}/selfsubjectaccessreviews`, { metadata: { name: 'x' }, spec: of({}) }, { what: 'a name' }),
    post(
      `${authorization}/selfsubjectaccessreviews`,
      { metadata: { namespace: 'x' }, spec: of({}) },
      { what: 'a namespace' },
    ),
    post(
      `${authorization}/selfsubjectaccessreviews`,
      { metadata: { labels: { a: 'b' } }, spec: of({}) },
      { what: 'labels' },
    ),
    other({ user: 'alice', ...of({}) }, { what: 'a user' }),
    other({ groups: ['x'], ...of({}) }, { what: 'groups alone' }),
    other({ user: 'alice', groups: [], uid: 'u', extra: { a: ['b'] }, ...of({}) }, { what: 'all of a user' }),
    other({ user: 'alice', groups: 'x', ...of({}) }, { what: 'groups as text' }),
    other({ user: 'alice', extra: { a: 'b' }, ...of({}) }, { what: 'extra as text' }),
    other(of({}), { what: 'without a user' }),
    other({ user: '', ...of({}) }, { what: 'an empty user' }),
    other({ user: 'alice' }, { what: 'no attributes' }),
    local({ user: 'alice', ...of({ namespace: 'reviews' }) }, { what: 'a user' }),
    local({ user: 'alice', ...of({ namespace: 'elsewhere' }) }, { what: 'another namespace' }),
    local({ user: 'alice', ...of({ namespace: undefined }) }, { what: 'no namespace' }),
    local({ user: 'alice', nonResourceAttributes: { path: '/' } }, { what: 'a path' }),
    local(of({ namespace: 'reviews' }), { what: 'without a user' }),
    post(
      `${authorization}/namespaces/{ns}/localsubjectaccessreviews`,
      { metadata: { namespace: 'x' }, spec: { user: 'a', ...of({ namespace: 'reviews' }) } },
      { what: 'a namespace of its own' },
    ),
    post(
      `${authorization}/namespaces/absent/localsubjectaccessreviews`,
      { spec: { user: 'a', ...of({ namespace: 'absent' }) } },
      { what: 'a namespace that does not exist' },
    ),
    rules({ namespace: 'default' }),
    rules({}, { what: 'no namespace' }),
    rules(undefined, { what: 'no spec' }),
    rules({ namespace: 'absent' }, { what: 'a namespace that does not exist' }),
    rules({ namespace: 'default' }, as({ 'Impersonate-User': 'alice' }, 'somebody')),
    whoami({ headersOnly: true }),
    whoami(as({ 'Impersonate-User': 'alice' }, 'alice')),
    whoami({
      accept: 'application/json;as=Table;v=v1;g=meta.k8s.io',
      ...as({ 'Impersonate-User': 'alice' }, 'alice as a table'),
    }),
    post(
      `${authentication}/selfsubjectreviews`,
      { metadata: { name: 'x' } },
      as({ 'Impersonate-User': 'alice' }, 'a name'),
    ),
    post(
      `${authentication}/selfsubjectreviews`,
      { status: { userInfo: { username: 'bob' } } },
      as({ 'Impersonate-User': 'alice' }, 'a status'),
    ),
    post(`${authentication}/selfsubjectreviews`, undefined, as({ 'Impersonate-User': 'alice' }, 'no body')),
    post(`${authentication}/selfsubjectreviews?dryRun=All`, {}, as({ 'Impersonate-User': 'alice' }, 'a dry run')),
    token({ token: 'nonsense' }),
    token({ token: '' }, { what: 'an empty token' }),
    token({}, { what: 'no token' }),
    token(undefined, { what: 'no spec' }),
    token({ token: 'nonsense', audiences: ['a', 'b'] }, { what: 'audiences' }),
    token({ token: 'a.b.c' }, { what: 'like a token' }),
    token({ token: 7 }, { what: 'a number' }),
    post(
      `${authentication}/tokenreviews`,
      { metadata: { namespace: 'x' }, spec: { token: 'x' } },
      { what: 'a namespace' },
    ),
    ...['selfsubjectaccessreviews', 'subjectaccessreviews', 'selfsubjectrulesreviews'].flatMap((resource) => [
      get(`${authorization}/${resource}`),
      put(`${authorization}/${resource}/x`, {}),
      send('DELETE', `${authorization}/${resource}`),
      get(`${authorization}/namespaces/{ns}/${resource}`),
    ]),
    get(`${authorization}/localsubjectaccessreviews`),
    post(`${authorization}/localsubjectaccessreviews`, { spec: { user: 'a', ...of({}) } }),
    get(`${authentication}/tokenreviews`),
    get(`${authentication}/selfsubjectreviews`),
  ],
}
