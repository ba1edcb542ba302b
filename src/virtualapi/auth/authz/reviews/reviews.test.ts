import { expect } from 'chai'
import { clusterIdOf, type ClusterName, type KubeObject } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import { WorkBudget } from '#apimachinery/work-budget/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import type { Attributes } from '#virtualapi/request/authorizer.ts'
import { CompiledRules } from '#virtualapi/auth/authz/compiled-rules.ts'
import { reviewOf, type ReviewContext } from './index.ts'

const id = clusterIdOf('acme')
const bob: UserInfo = { name: 'bob', groups: ['dev'], extra: { team: ['blue'] }, realm: { kind: 'cluster', id } }
const asked: { user: UserInfo; attributes: Attributes }[] = []
const context: ReviewContext = {
  user: bob,
  cluster: { name: 'acme' as ClusterName, id, uid: 'u', creationTimestamp: '', owners: [], deleting: false },
  namespace: '',
  // A fixed rule that records its arguments: these tests check how reviews are translated, not RBAC.
  authorizer: {
    reviewed: (user) => user,
    authorize: async (user, attributes) => {
      asked.push({ user, attributes })
      return attributes.verb === 'get' ? { allowed: true, reason: 'RBAC: allowed' } : { allowed: false, reason: '' }
    },
    rulesFor: async (_user, namespace) => ({
      roles: [
        new CompiledRules([
          { verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: [namespace] },
          { verbs: ['get'], nonResourceURLs: ['/version'] },
        ]),
        new CompiledRules([{ verbs: ['get'], nonResourceURLs: ['/version'] }]),
      ],
      problems: namespace === 'none' ? ['clusterrole.rbac.authorization.k8s.io "r" not found'] : [],
      isComplete: namespace !== 'full',
    }),
  },
  tokenReviewer: {
    reviewToken: async (token, audiences, cluster) =>
      token === 'good' && cluster.id === id
        ? { user: bob, audiences: audiences.length > 0 ? audiences : ['api'] }
        : undefined,
  },
  work: new WorkBudget(),
  signal: new AbortController().signal,
  now: Date.parse('2026-01-01T00:00:00Z'),
}

async function review(kind: string, spec?: object, extra: Partial<ReviewContext> = {}): Promise<unknown> {
  const group =
    kind === 'TokenReview' || kind === 'SelfSubjectReview' ? 'authentication.k8s.io' : 'authorization.k8s.io'
  const object: KubeObject = { kind, apiVersion: `${group}/v1`, metadata: {}, ...(spec === undefined ? {} : { spec }) }
  asked.length = 0
  try {
    const response = await reviewOf({ group, resource: `${kind.toLowerCase()}s` })!(object, { ...context, ...extra })
    const { status, ...rest } = response
    // These two reviews do not return the spec and metadata that were sent.
    const metadata = kind === 'LocalSubjectAccessReview' ? { namespace: extra.namespace } : {}
    if (kind !== 'SelfSubjectRulesReview' && kind !== 'SelfSubjectReview')
      expect(rest).to.deep.equal({ ...object, metadata })
    return status
  } catch (error) {
    if (!isStatusError(error)) throw error
    return `${error.code} ${error.message}`
  }
}
const getPods = { verb: 'get', group: '', resource: 'pods', subresource: 'log', namespace: 'shop', name: 'web' }

describe('the review APIs', () => {
  it('decide about the requesting user', async () => {
    expect(await review('SelfSubjectAccessReview', { resourceAttributes: getPods })).to.deep.equal({
      allowed: true,
      reason: 'RBAC: allowed',
    })
    expect(asked).to.deep.equal([
      { user: bob, attributes: { verb: 'get', resource: { version: '', ...without(getPods, 'verb') } } },
    ])
    expect(
      await review('SelfSubjectAccessReview', { nonResourceAttributes: { verb: 'post', path: '/x' } }),
    ).to.deep.equal({ allowed: false })
    expect(asked[0]?.attributes).to.deep.equal({ verb: 'post', path: '/x' })
  })
  it('decide about another user, as an identity of this logical cluster', async () => {
    const spec = { resourceAttributes: getPods, user: 'eve', groups: ['ops'], uid: '9', extra: { a: ['b'] } }
    expect(await review('SubjectAccessReview', spec, { user: { ...bob, realm: { kind: 'host' } } })).to.have.property(
      'allowed',
      true,
    )
    expect(asked[0]?.user).to.deep.equal({
      name: 'eve',
      uid: '9',
      groups: ['ops'],
      extra: { a: ['b'] },
      realm: { kind: 'cluster', id },
    })
  })
  it('decide about the namespace of the URL', async () => {
    const spec = { resourceAttributes: getPods, user: 'eve' }
    expect(await review('LocalSubjectAccessReview', spec, { namespace: 'shop' })).to.have.property('allowed', true)
    expect(await review('LocalSubjectAccessReview', spec, { namespace: 'other' })).to.equal(
      '422 .authorization.k8s.io "" is invalid: spec.resourceAttributes.namespace: Invalid value: "shop": must match metadata.namespace',
    )
    expect(
      await review(
        'LocalSubjectAccessReview',
        { nonResourceAttributes: { path: '/x' }, user: 'eve' },
        { namespace: 'shop' },
      ),
    ).to.match(/^422 .*disallowed/)
  })
  for (const [kind, spec, text] of [
    [
      'SelfSubjectAccessReview',
      undefined,
      /^422 .authorization.k8s.io "" is invalid: spec.resourceAttributes: .*exactly one of/,
    ],
    [
      'SelfSubjectAccessReview',
      { resourceAttributes: getPods, nonResourceAttributes: { path: '/' } },
      /^422 .*cannot be specified in combination/,
    ],
    ['SubjectAccessReview', { resourceAttributes: getPods }, /^422 .*at least one of user or group must be specified/],
    ['SubjectAccessReview', { resourceAttributes: getPods, user: 7, groups: 'dev' }, /^422 /],
    [
      'SubjectAccessReview',
      { resourceAttributes: getPods, groups: Array<string>(10_001).fill('g') },
      /^422 .*spec.groups: Too many: 10001: must have at most 10000 items/,
    ],
    ['SelfSubjectRulesReview', {}, /^400 no namespace on request/],
    ['TokenReview', {}, /^400 token is required/],
  ] as const) {
    it(`refuse ${kind} ${JSON.stringify(spec ?? {}).slice(0, 200)}`, async () => {
      expect(await review(kind, spec)).to.match(text)
      expect(asked).to.deep.equal([])
    })
  }
  it('ignore a selector that they do not understand, and report it in evaluationError', async () => {
    const selectors = {
      labelSelector: { rawSelector: 'a=(' },
      fieldSelector: {
        requirements: [
          { key: 'metadata.name', operator: 'In', values: ['x'] },
          { key: 'spec.x', operator: 'Exists' },
        ],
      },
    }
    expect(await review('SelfSubjectAccessReview', { resourceAttributes: { ...getPods, ...selectors } })).to.deep.equal(
      {
        allowed: true,
        reason: 'RBAC: allowed',
        evaluationError:
          'spec.resourceAttributes.fieldSelector partially ignored due to parse error; ' +
          'spec.resourceAttributes.labelSelector ignored due to parse error',
      },
    )
  })
  it('list the rules of the requesting user in a namespace', async () => {
    expect(await review('SelfSubjectRulesReview', { namespace: 'shop' })).to.deep.equal({
      resourceRules: [{ verbs: ['get'], apiGroups: [''], resources: ['pods'], resourceNames: ['shop'] }],
      nonResourceRules: [{ verbs: ['get'], nonResourceURLs: ['/version'] }],
      incomplete: false,
    })
  })
  it('list each rule once, and say which roles are missing and that rules may be', async () => {
    const evaluationError = 'clusterrole.rbac.authorization.k8s.io "r" not found'
    expect(await review('SelfSubjectRulesReview', { namespace: 'none' })).to.include({
      incomplete: false,
      evaluationError,
    })
    expect(await review('SelfSubjectRulesReview', { namespace: 'full' })).to.have.property('incomplete', true)
  })
  it('return the requesting user', async () => {
    expect(await review('SelfSubjectReview')).to.deep.equal({
      userInfo: { username: 'bob', groups: ['dev'], extra: { team: ['blue'] } },
    })
  })
  it('return the user of a valid token, and nothing for an invalid one', async () => {
    expect(await review('TokenReview', { token: 'good', audiences: ['x'] })).to.deep.equal({
      authenticated: true,
      user: { username: 'bob', groups: ['dev'], extra: { team: ['blue'] } },
      audiences: ['x'],
    })
    const refused = { user: {}, error: 'invalid bearer token' }
    expect(await review('TokenReview', { token: 'bad' })).to.deep.equal(refused)
    expect(await review('TokenReview', { token: 'good' }, { tokenReviewer: undefined })).to.deep.equal(refused)
  })
  it('are found only under their own group and resource', () => {
    expect(reviewOf({ group: 'authorization.k8s.io', resource: 'selfsubjectreviews' })).to.equal(undefined)
    expect(reviewOf({ group: '', resource: 'pods' })).to.equal(undefined)
  })
})

function without(object: object, key: string): object {
  return Object.fromEntries(Object.entries(object).filter(([name]) => name !== key))
}
