import { expect } from 'chai'
import type { AuditPolicy } from '#crds/index.ts'
import type { UserInfo } from '#virtualapi/request/user-info.ts'
import { compilePolicy, parsePolicy } from './policy.ts'

const head = 'apiVersion: audit.k8s.io/v1\nkind: Policy\n'
const user: UserInfo = { name: 'tim', groups: ['people'], extra: {}, realm: { kind: 'host' } }
const target = { group: '', version: 'v1', resource: 'pods', subresource: '', namespace: 'default', name: 'busybox' }
const on = (more: Partial<typeof target> = {}, verb = 'get') => ({ verb, resource: { ...target, ...more } })
const levelOf = (rules: AuditPolicy['rules'], attributes: Parameters<ReturnType<typeof compilePolicy>>[0]) =>
  compilePolicy({ rules: rules ?? [] })(attributes, user)?.level ?? 'None'

describe('an audit policy', () => {
  for (const { title, text, says } of [
    { title: 'another kind', text: 'apiVersion: v1\nkind: Pod\n', says: /must have apiVersion audit.k8s.io\/v1/ },
    {
      title: 'an old version',
      text: 'apiVersion: audit.k8s.io/v1beta1\nkind: Policy\nrules: [{level: None}]',
      says: /v1beta1/,
    },
    { title: 'no rules', text: head, says: /loaded illegal policy with 0 rules/ },
    { title: 'a rule without a level', text: `${head}rules: [{}]`, says: /^rules\[0\].level: Required value$/ },
    {
      title: 'an unknown level',
      text: `${head}rules: [{level: Everything}]`,
      says: /^rules\[0\].level: Unsupported value: "Everything": supported values: "None", "Metadata", "Request", "RequestResponse"$/,
    },
    {
      title: 'an unknown stage',
      text: `${head}omitStages: [Begin]\nrules: [{level: None}]`,
      says: /^omitStages\[0\]: Invalid value: "Begin": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic$/,
    },
    {
      title: 'resources and paths in one rule',
      text: `${head}rules: [{level: None, namespaces: [a], nonResourceURLs: [/x]}]`,
      says: /rules cannot apply to both regular resources and non-resource URLs/,
    },
    {
      title: 'a wildcard in the middle of a path',
      text: `${head}rules: [{level: None, nonResourceURLs: ['/a*b', 'x']}]`,
      says: /wildcards '\*' must be the final character.*must begin with a '\/' character/,
    },
    {
      title: 'names of objects without resources',
      text: `${head}rules: [{level: None, resources: [{group: '', resourceNames: [a]}]}]`,
      says: /using resourceNames requires at least one resource/,
    },
    {
      title: 'a version in a group',
      text: `${head}rules: [{level: None, resources: [{group: rbac.authorization.k8s.io/v1}]}]`,
      says: /rules\[0\].resources.group: Invalid value: "rbac.authorization.k8s.io\/v1"/,
    },
    { title: 'a list that is none', text: `${head}rules: {level: None}`, says: /rules: it must be a list/ },
    { title: 'a verb that is no text', text: `${head}rules: [{level: None, verbs: [7]}]`, says: /it must be a text/ },
    { title: 'aliases that multiply', text: `${head}a: &a [1]\nrules: [*a, *a]`, says: /alias/i },
  ])
    it(`with ${title} is refused`, () => expect(() => parsePolicy(text)).to.throw(says))

  it('may have fields that do not exist, which are told', () => {
    const { ignored, policy } = parsePolicy(`${head}rules: [{level: Metadata, colour: red}]`)
    expect(ignored).to.deep.equal(['unknown field "rules[0].colour"'])
    expect(policy.rules).to.have.length(1)
  })

  for (const { title, rule, matches, not } of [
    { title: 'users', rule: { users: ['tim', 'bob'] }, matches: on(), not: undefined },
    { title: 'other users', rule: { users: ['bob'] }, matches: undefined, not: on() },
    { title: 'groups', rule: { userGroups: ['people'] }, matches: on(), not: undefined },
    { title: 'verbs', rule: { verbs: ['get'] }, matches: on(), not: on({}, 'list') },
    { title: 'namespaces', rule: { namespaces: ['default'] }, matches: on(), not: on({ namespace: '' }) },
    { title: 'no namespace', rule: { namespaces: [''] }, matches: on({ namespace: '' }), not: on() },
    { title: 'a group', rule: { resources: [{ group: '' }] }, matches: on(), not: on({ group: 'apps' }) },
    {
      title: 'all groups',
      rule: { resources: [{ group: '*' }] },
      matches: on({ group: 'x' }),
      not: { verb: 'get', path: '/' },
    },
    {
      title: 'a resource',
      rule: { resources: [{ resources: ['pods'] }] },
      matches: on(),
      not: on({ subresource: 'log' }),
    },
    {
      title: 'a subresource',
      rule: { resources: [{ resources: ['pods/log'] }] },
      matches: on({ subresource: 'log' }),
      not: on(),
    },
    {
      title: 'all of a resource',
      rule: { resources: [{ resources: ['pods/*'] }] },
      matches: on(),
      not: on({ resource: 'nodes' }),
    },
    {
      title: 'a subresource of all',
      rule: { resources: [{ resources: ['*/log'] }] },
      matches: on({ subresource: 'log' }),
      not: on(),
    },
    {
      title: 'names',
      rule: { resources: [{ resources: ['pods'], resourceNames: ['busybox'] }] },
      matches: on(),
      not: on({ name: 'other' }),
    },
    { title: 'paths', rule: { nonResourceURLs: ['/logs*'] }, matches: { verb: 'get', path: '/logs/x' }, not: on() },
    {
      title: 'a path',
      rule: { nonResourceURLs: ['/logs'] },
      matches: { verb: 'get', path: '/logs' },
      not: { verb: 'get', path: '/logs/x' },
    },
  ])
    it(`chooses by ${title}`, () => {
      const rules = [{ level: 'Request', ...rule }]
      if (matches !== undefined) expect(levelOf(rules, matches)).to.equal('Request')
      if (not !== undefined) expect(levelOf(rules, not)).to.equal('None')
    })

  it('lets the first rule decide, and joins the stages that are left out', () => {
    const decide = compilePolicy({
      omitStages: ['RequestReceived'],
      omitManagedFields: true,
      rules: [
        { level: 'None', users: ['eve'] },
        { level: 'Metadata', verbs: ['get'], omitStages: ['Panic'], omitManagedFields: false },
        { level: 'RequestResponse' },
      ],
    })
    const found = decide(on(), user)
    expect(found?.level).to.equal('Metadata')
    expect([...(found?.omitStages ?? [])]).to.have.members(['RequestReceived', 'Panic'])
    expect(found?.omitManagedFields).to.equal(false)
    expect(decide(on({}, 'list'), user)?.omitManagedFields).to.equal(true)
    expect(decide(on(), { ...user, name: 'eve' })).to.equal(undefined)
    expect(decide(on(), undefined)?.level).to.equal('Metadata')
  })
})
