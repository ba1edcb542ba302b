// Requests about identity and permissions, and the messages of refusals.
import type { JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { row, type Row } from '#test/parity/support/compare-rows.ts'
import { valueAt, type SendOptions, type Session } from '#test/parity/support/session.ts'

const rbac = 'rbac.authorization.k8s.io/v1'
const as = (user: string, groups: string[] = []): SendOptions => ({
  headers: { 'impersonate-user': user, ...(groups.length === 0 ? {} : { 'impersonate-group': groups }) },
})

type Rule = JsonObject

/** Grants a ClusterRole to a user of this name, or a Role in the namespace. */
async function grant(
  session: Session,
  name: string,
  rules: readonly Rule[],
  { inNamespace = false } = {},
): Promise<void> {
  const kind = inNamespace ? 'Role' : 'ClusterRole'
  const metadata = { name: `${name}-$ID` }
  await session.create({ apiVersion: rbac, kind, metadata, rules: [...rules] }, { quiet: true })
  const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind, name: `${name}-$ID` }
  const subjects = [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: `${name}-$ID` }]
  await session.create({ apiVersion: rbac, kind: `${kind}Binding`, metadata, roleRef, subjects }, { quiet: true })
}

const ns = '/api/v1/namespaces/$NS'
const nobody = as('nobody-$ID')

const refused: readonly [string, string, JsonValue?][] = [
  ['GET', `${ns}/configmaps/x`],
  ['GET', `${ns}/configmaps`],
  ['GET', `${ns}/configmaps?watch=true`],
  ['GET', '/api/v1/configmaps'],
  ['GET', '/api/v1/nodes'],
  ['GET', '/api/v1/nodes/x'],
  ['GET', '/api/v1/namespaces/$NS'],
  ['GET', '/api/v1/namespaces'],
  ['POST', `${ns}/configmaps`, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } }],
  ['PUT', `${ns}/configmaps/x`, { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'x' } }],
  ['PATCH', `${ns}/configmaps/x`, {}],
  ['DELETE', `${ns}/configmaps/x`],
  ['DELETE', `${ns}/configmaps`],
  ['GET', '/apis/apps/v1/namespaces/$NS/deployments/x/scale'],
  ['PUT', '/apis/apps/v1/namespaces/$NS/deployments/x/status', {}],
  ['POST', `${ns}/pods/x/eviction`, {}],
  ['POST', `${ns}/pods/x/exec?command=sh`],
  ['GET', `${ns}/pods/x/log`],
  ['GET', '/apis/none.example.com/v1/namespaces/$NS/nones/x'],
  ['GET', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions'],
  ['GET', '/metrics'],
  ['GET', '/logs/x'],
  ['POST', '/version', {}],
  ['GET', '/version'],
  ['GET', '/apis'],
]

const attributes = (rest: JsonObject): JsonObject => ({ resourceAttributes: rest })
const review = (kind: string, spec: JsonObject, rest: JsonObject = {}): JsonObject => ({
  ...{ apiVersion: 'authorization.k8s.io/v1', kind, spec },
  ...rest,
})
const reviews = '/apis/authorization.k8s.io/v1'

export const accessRows: readonly Row[] = [
  ...refused.map(([method, path, body]) =>
    row(`refused: ${method} ${path}`, async (session) => {
      const patch: SendOptions =
        method === 'PATCH' ? { headers: { ...nobody.headers, 'content-type': 'application/merge-patch+json' } } : nobody
      await session.send(method, path, { ...patch, ...(body === undefined ? {} : { body }) })
    }),
  ),
  row('anonymous: readable and refused paths', async (session) => {
    for (const path of [
      '/healthz',
      '/livez',
      '/readyz',
      '/api',
      '/apis',
      '/openapi/v3',
      `${ns}/configmaps`,
      '/metrics',
    ])
      await session.send('GET', path, { anonymous: true })
    await session.send('GET', '/version', {
      anonymous: true,
      without: [
        'gitCommit',
        'gitTreeState',
        'buildDate',
        'goVersion',
        'platform',
        'gitVersion',
        'compiler',
        'major',
        'minor',
        'emulationMajor',
        'emulationMinor',
        'minCompatibilityMajor',
        'minCompatibilityMinor',
      ],
    })
  }),
  row('an invalid token', async (session) => {
    await session.send('GET', `${ns}/configmaps`, { anonymous: true, headers: { authorization: 'Bearer nonsense' } })
    await session.send('GET', `${ns}/configmaps`, { anonymous: true, headers: { authorization: 'Basic YTpi' } })
  }),
  row('impersonation: who may become whom', async (session) => {
    await grant(session, 'actor', [
      { apiGroups: [''], resources: ['users'], verbs: ['impersonate'], resourceNames: ['alice'] },
      { apiGroups: [''], resources: ['serviceaccounts'], verbs: ['impersonate'] },
    ])
    const whoami = '/apis/authentication.k8s.io/v1/selfsubjectreviews'
    const body = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    for (const headers of [
      { 'impersonate-user': 'alice' },
      { 'impersonate-user': 'alice', 'impersonate-group': ['one', 'two'] },
      { 'impersonate-user': 'alice', 'impersonate-uid': 'u-1', 'impersonate-extra-scopes': ['a', 'b'] },
      { 'impersonate-user': 'alice', 'impersonate-extra-example.com%2fthing': 'x' },
      { 'impersonate-user': 'system:serviceaccount:$NS:default' },
      { 'impersonate-user': 'system:serviceaccount:$NS:default', 'impersonate-group': ['mine'] },
      { 'impersonate-user': 'system:anonymous' },
      { 'impersonate-group': ['one'] },
      { 'impersonate-uid': 'x' },
      { 'impersonate-extra-scopes': 'x' },
    ])
      await session.send('POST', whoami, { body, headers })
    await session.send('POST', whoami, {
      body,
      without: ['status.userInfo.extra', 'status.userInfo.username', 'status.userInfo.groups'],
    })
    // Impersonation cannot be nested: a review tells what the second user may do.
    for (const [resource, name] of [
      ['users', 'alice'],
      ['users', 'bob'],
      ['groups', 'one'],
      ['serviceaccounts', 'default'],
    ] as const)
      await session.send('POST', `${reviews}/subjectaccessreviews`, {
        body: review('SubjectAccessReview', {
          user: 'actor-$ID',
          ...attributes({ verb: 'impersonate', resource, name }),
        }),
      })
  }),
  row('rules: verbs, wildcards, names, subresources', async (session) => {
    await grant(session, 'ruled', [
      { apiGroups: [''], resources: ['pods'], verbs: ['get', 'list'] },
      { apiGroups: ['apps'], resources: ['*'], verbs: ['get'] },
      { apiGroups: ['*'], resources: ['*/scale'], verbs: ['update'] },
      { apiGroups: ['batch'], resources: ['jobs/status'], verbs: ['patch'] },
      { apiGroups: [''], resources: ['configmaps'], verbs: ['update', 'list', 'create'], resourceNames: ['mine'] },
      { nonResourceURLs: ['/healthz', '/logs/*'], verbs: ['get'] },
    ])
    await grant(session, 'ruled', [{ apiGroups: [''], resources: ['secrets'], verbs: ['*'] }], { inNamespace: true })
    const ask = (spec: JsonObject): Promise<unknown> =>
      session.send('POST', `${reviews}/subjectaccessreviews`, {
        body: review('SubjectAccessReview', { user: 'ruled-$ID', ...spec }),
      })
    for (const one of [
      { verb: 'get', resource: 'pods' },
      { verb: 'get', resource: 'pods', namespace: '$NS', name: 'x' },
      { verb: 'delete', resource: 'pods' },
      { verb: 'get', resource: 'pods', subresource: 'log' },
      { verb: 'get', group: 'apps', resource: 'deployments', subresource: 'status' },
      { verb: 'get', group: 'apps', version: 'v9', resource: 'anything' },
      { verb: 'update', group: 'apps', resource: 'deployments', subresource: 'scale' },
      { verb: 'update', group: 'other', resource: 'things', subresource: 'scale' },
      { verb: 'update', group: 'other', resource: 'things' },
      { verb: 'patch', group: 'batch', resource: 'jobs', subresource: 'status' },
      { verb: 'patch', group: 'batch', resource: 'jobs' },
      { verb: 'update', resource: 'configmaps', name: 'mine' },
      { verb: 'update', resource: 'configmaps', name: 'other' },
      { verb: 'list', resource: 'configmaps' },
      { verb: 'create', resource: 'configmaps' },
      { verb: 'anything', resource: 'secrets', namespace: '$NS' },
      { verb: 'get', resource: 'secrets' },
      { verb: 'get', resource: 'secrets', namespace: 'default' },
      { verb: '*', resource: 'secrets', namespace: '$NS' },
      { verb: 'get', resource: '*' },
    ])
      await ask(attributes(one))
    for (const path of ['/healthz', '/healthz/ping', '/logs/x', '/logs', '/metrics'])
      await ask({ nonResourceAttributes: { path, verb: 'get' } })
    await ask({ nonResourceAttributes: { path: '/healthz', verb: 'post' } })
    await session.send('POST', '/apis/authorization.k8s.io/v1/selfsubjectrulesreviews', {
      body: review('SelfSubjectRulesReview', { namespace: '$NS' }),
      ...as('ruled-$ID', ['just-$ID']),
    })
  }),
  row('invalid reviews', async (session) => {
    for (const [resource, body] of [
      ['subjectaccessreviews', review('SubjectAccessReview', {})],
      ['subjectaccessreviews', review('SubjectAccessReview', { user: 'x' })],
      ['subjectaccessreviews', review('SubjectAccessReview', attributes({ verb: 'get' }))],
      [
        'subjectaccessreviews',
        review('SubjectAccessReview', { user: 'x', ...attributes({}), nonResourceAttributes: { path: '/' } }),
      ],
      [
        'subjectaccessreviews',
        review(
          'SubjectAccessReview',
          { user: 'x', ...attributes({ verb: 'get', resource: 'pods' }) },
          { metadata: { name: 'x' } },
        ),
      ],
      ['selfsubjectaccessreviews', review('SelfSubjectAccessReview', {})],
      [
        'selfsubjectaccessreviews',
        review('SelfSubjectAccessReview', attributes({ verb: 'get', resource: 'pods' }), {
          status: { allowed: false },
        }),
      ],
      ['selfsubjectrulesreviews', review('SelfSubjectRulesReview', {})],
      [
        'subjectaccessreviews',
        review('SubjectAccessReview', { groups: ['system:masters'], ...attributes({ verb: 'get', resource: 'pods' }) }),
      ],
      [
        'subjectaccessreviews',
        review('SubjectAccessReview', {
          user: 'x',
          ...attributes({
            verb: 'list',
            resource: 'pods',
            labelSelector: { rawSelector: 'a=b', requirements: [{ key: 'a', operator: 'In', values: ['b'] }] },
          }),
        }),
      ],
    ] as [string, JsonObject][])
      await session.send('POST', `${reviews}/${resource}`, { body })
    const local = `${reviews}/namespaces/$NS/localsubjectaccessreviews`
    for (const spec of [
      { user: 'x', ...attributes({ namespace: '$NS', verb: 'get', resource: 'pods' }) },
      { user: 'x', ...attributes({ namespace: 'other', verb: 'get', resource: 'pods' }) },
      { user: 'x', ...attributes({ verb: 'get', resource: 'pods' }) },
      { user: 'x', nonResourceAttributes: { path: '/', verb: 'get' } },
    ])
      await session.send('POST', local, { body: review('LocalSubjectAccessReview', spec) })
    await session.get(`${reviews}/subjectaccessreviews`)
  }),
  row('aggregated roles contain the rules of selected roles', async (session) => {
    const parts = { aggregate: 'this-$ID' }
    await session.create({
      apiVersion: rbac,
      kind: 'ClusterRole',
      metadata: { name: 'part-$ID', labels: parts },
      rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }],
    })
    await session.create({
      apiVersion: rbac,
      kind: 'ClusterRole',
      metadata: { name: 'whole-$ID' },
      aggregationRule: { clusterRoleSelectors: [{ matchLabels: parts }] },
    })
  }),
  row('escalation: users cannot grant rights that they lack', async (session) => {
    await grant(session, 'giver', [
      {
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['roles', 'rolebindings', 'clusterroles', 'clusterrolebindings'],
        verbs: ['create', 'update', 'patch', 'get'],
      },
      { apiGroups: [''], resources: ['pods'], verbs: ['get'] },
      {
        apiGroups: ['rbac.authorization.k8s.io'],
        resources: ['clusterroles'],
        verbs: ['bind'],
        resourceNames: ['view'],
      },
    ])
    const giver = as('giver-$ID')
    const role = (name: string, rules: JsonValue, kind = 'Role'): Parameters<Session['create']>[0] => ({
      apiVersion: rbac,
      kind,
      metadata: { name },
      rules,
    })
    await session.create(role('less', [{ apiGroups: [''], resources: ['pods'], verbs: ['get'] }]), giver)
    await session.create(
      role('more', [{ apiGroups: [''], resources: ['pods', 'secrets'], verbs: ['get', 'list'] }]),
      giver,
    )
    await session.create(role('all', [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]), giver)
    await session.create(role('urls-$ID', [{ nonResourceURLs: ['/x'], verbs: ['get'] }], 'ClusterRole'), giver)
    await session.create(
      role('named', [{ apiGroups: [''], resources: ['pods'], resourceNames: ['a'], verbs: ['get', 'delete'] }]),
      giver,
    )
    const binding = (name: string, to: string, kind = 'ClusterRole'): Parameters<Session['create']>[0] => ({
      ...{ apiVersion: rbac, kind: 'RoleBinding', metadata: { name } },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind, name: to },
      subjects: [{ kind: 'User', name: 'friend', apiGroup: 'rbac.authorization.k8s.io' }],
    })
    await session.create(binding('to-view', 'view'), giver)
    await session.create(binding('to-admin', 'cluster-admin'), giver)
    await session.create(binding('to-less', 'less', 'Role'), giver)
    await session.create(binding('to-none', 'none', 'Role'), giver)
    await session.patch(
      '/apis/rbac.authorization.k8s.io/v1/namespaces/$NS/roles/less',
      { rules: [{ apiGroups: [''], resources: ['pods'], verbs: ['*'] }] },
      'merge',
      giver,
    )
    await session.patch(
      '/apis/rbac.authorization.k8s.io/v1/namespaces/$NS/roles/less',
      { metadata: { labels: { a: 'b' } } },
      'merge',
      giver,
    )
  }),
  row('TokenRequest: allowed and refused options', async (session) => {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'holder' } } as const
    await session.create(account, { quiet: true })
    await session.create({ apiVersion: 'v1', kind: 'Secret', metadata: { name: 'bound' } }, { quiet: true })
    await session.create(
      {
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'bound' },
        spec: { serviceAccountName: 'other', containers: [{ name: 'a', image: 'b' }] },
      },
      { quiet: true },
    )
    const path = `${ns}/serviceaccounts/holder/token`
    const request = (spec: JsonObject, rest: JsonObject = {}): JsonObject => ({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'TokenRequest',
      spec,
      ...rest,
    })
    const without = ['status.token', 'spec.audiences', 'metadata.uid']
    for (const body of [
      request({}),
      request({ audiences: ['a', 'b'], expirationSeconds: 600 }),
      request({ expirationSeconds: 599 }),
      request({ expirationSeconds: 4294967297 }),
      request({ expirationSeconds: 0 }),
      request({ boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'bound' } }),
      request({ boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'absent' } }),
      request({ boundObjectRef: { kind: 'Secret', apiVersion: 'v1', name: 'bound', uid: 'wrong' } }),
      request({ boundObjectRef: { kind: 'Pod', apiVersion: 'v1', name: 'bound' } }),
      request({ boundObjectRef: { kind: 'ConfigMap', apiVersion: 'v1', name: 'bound' } }),
      request({}, { metadata: { name: 'other' } }),
      request({}, { metadata: { namespace: 'other' } }),
      { ...request({}), kind: 'Other' },
      {},
    ])
      await session.send('POST', path, { body, without })
    await session.send('POST', `${ns}/serviceaccounts/absent/token`, { body: request({}), without })
    await session.get(path)
  }),
  row('tokens: who they are, and until when', async (session) => {
    await session.create({ apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'short' } }, { quiet: true })
    const { body } = await session.send('POST', `${ns}/serviceaccounts/short/token`, {
      quiet: true,
      body: { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest', spec: {} },
    })
    const token = valueAt(body, 'status.token')
    const headers = { authorization: `Bearer ${typeof token === 'string' ? token : ''}` }
    const without = ['status.userInfo.extra', 'status.audiences', 'spec.token']
    const whoami = { apiVersion: 'authentication.k8s.io/v1', kind: 'SelfSubjectReview' }
    const ask = { apiVersion: 'authentication.k8s.io/v1', kind: 'TokenReview', spec: { token } }
    await session.send('POST', '/apis/authentication.k8s.io/v1/selfsubjectreviews', {
      anonymous: true,
      headers,
      body: whoami,
      without,
    })
    await session.send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body: ask, without })
    await session.send('GET', `${ns}/configmaps`, { anonymous: true, headers })
    await session.send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      body: { ...ask, spec: { token, audiences: ['other'] } },
      without: ['spec.token', 'status.error'],
    })
    await session.send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      body: { ...ask, spec: { token: 'nonsense' } },
      without: ['status.error'],
    })
    await session.send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', { body: { ...ask, spec: {} } })
    await session.delete(`${ns}/serviceaccounts/short`, undefined, { quiet: true })
    await session.send('GET', `${ns}/configmaps`, { anonymous: true, headers })
    await session.send('POST', '/apis/authentication.k8s.io/v1/tokenreviews', {
      body: ask,
      without: [...without, 'status.error'],
    })
  }),
]
