import { expect } from 'chai'
import { generateKeyPairSync } from 'node:crypto'
import { createLocalJWKSet, decodeJwt, jwtVerify, SignJWT } from 'jose'
import { clusterIdOf, type ClusterName } from '#apimachinery/meta/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import {
  apiAudience,
  createServiceAccountTokens,
  issuerOf,
  type NamedObject,
  type ServiceAccountTokens,
  type TokenGrant,
} from './service-account-tokens.ts'

const signal = new AbortController().signal
const a = logicalCluster('a')
const b = logicalCluster('b')
const directory: ClusterDirectory = {
  byName: (name) => [a, b].find((cluster) => cluster.name === name),
  byId: (id) => [a, b].find((cluster) => cluster.id === id),
  all: () => [a, b],
  childrenOf: () => [],
  onChange: () => () => undefined,
}
const pem = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey.export({ type: 'pkcs8', format: 'pem' }).toString()

describe('tokens of ServiceAccounts', () => {
  const privateKey = pem()
  let nowMs: number
  let objects: Map<string, NamedObject>
  let tokens: ServiceAccountTokens
  const grant: TokenGrant = {
    cluster: a.id,
    namespace: 'shop',
    serviceAccount: { name: 'robot', uid: 'u1' },
    audiences: [apiAudience],
    expirationSeconds: 600,
  }

  beforeEach(() => {
    nowMs = Date.parse('2026-01-01T00:00:00Z')
    objects = new Map([[`${a.id}/serviceaccounts/shop/robot`, { uid: 'u1' }]])
    tokens = createServiceAccountTokens({
      privateKey,
      directory,
      find: async (cluster, { resource, namespace, name }) =>
        objects.get([cluster, resource, namespace, name].filter((part) => part !== '').join('/')),
      clock: { now: () => nowMs, monotonic: () => nowMs },
    })
  })

  it('have the claims that tokens of Kubernetes have', async () => {
    const claims = decodeJwt(await tokens.issue({ ...grant, secret: { name: 's', uid: 'u2' } }))
    expect(claims).to.deep.include({
      iss: issuerOf(a.id),
      sub: 'system:serviceaccount:shop:robot',
      aud: [apiAudience],
      iat: nowMs / 1000,
      nbf: nowMs / 1000,
      exp: nowMs / 1000 + 600,
      'kubernetes.io': {
        namespace: 'shop',
        serviceaccount: { name: 'robot', uid: 'u1' },
        secret: { name: 's', uid: 'u2' },
      },
    })
    expect(claims.jti).to.match(/^[0-9a-f-]{36}$/)
  })

  it('can be verified with the published key', async () => {
    const token = await tokens.issue(grant)
    const keys = createLocalJWKSet(await tokens.keys())
    const { payload } = await jwtVerify(token, keys, { issuer: issuerOf(a.id), currentDate: new Date(nowMs) })
    expect(payload.sub).to.equal('system:serviceaccount:shop:robot')
  })

  it('authenticate the ServiceAccount, in its logical cluster only', async () => {
    const token = await tokens.issue(grant)
    const found = await tokens.verify(token, undefined, signal)
    expect(found?.cluster.name).to.equal('a')
    expect(found?.user).to.deep.include({
      name: 'system:serviceaccount:shop:robot',
      uid: 'u1',
      realm: { kind: 'cluster', id: a.id },
    })
    objects.set(`${b.id}/serviceaccounts/shop/robot`, { uid: 'u1' })
    expect(await tokens.verify(token, b.id, signal)).to.equal(undefined)
  })

  for (const { title, bound, spoil } of [
    { title: 'it has expired', spoil: () => (nowMs += 600_000) },
    { title: 'the ServiceAccount is gone', spoil: () => objects.delete(`${a.id}/serviceaccounts/shop/robot`) },
    {
      title: 'the ServiceAccount is another one',
      spoil: () => objects.set(`${a.id}/serviceaccounts/shop/robot`, { uid: 'u9' }),
    },
    {
      title: 'the deletionTimestamp of the ServiceAccount is a minute ago',
      spoil: () => objects.set(`${a.id}/serviceaccounts/shop/robot`, { uid: 'u1', deletedMs: nowMs - 60_000 }),
    },
    { title: 'its pod is gone', bound: 'pod', spoil: () => objects.delete(`${a.id}/pods/shop/x`) },
    { title: 'its pod is another one', bound: 'pod', spoil: () => objects.set(`${a.id}/pods/shop/x`, { uid: 'u9' }) },
    { title: 'its secret is gone', bound: 'secret', spoil: () => objects.delete(`${a.id}/secrets/shop/x`) },
    { title: 'its node is gone', bound: 'node', spoil: () => objects.delete(`${a.id}/nodes/x`) },
  ] as { title: string; bound?: 'pod' | 'secret' | 'node'; spoil: () => unknown }[])
    it(`are invalid at once when ${title}`, async () => {
      objects.set(`${a.id}/pods/shop/x`, { uid: 'u2' })
      objects.set(`${a.id}/secrets/shop/x`, { uid: 'u2' })
      objects.set(`${a.id}/nodes/x`, { uid: 'u2' })
      const token = await tokens.issue({ ...grant, ...(bound && { [bound]: { name: 'x', uid: 'u2' } }) })
      expect(await tokens.verify(token, a.id, signal)).to.not.equal(undefined)
      spoil()
      expect(await tokens.verify(token, a.id, signal)).to.equal(undefined)
    })

  it('of a pod name its node without depending on it', async () => {
    objects.set(`${a.id}/pods/shop/x`, { uid: 'u2' })
    const bound = { pod: { name: 'x', uid: 'u2' }, node: { name: 'n', uid: '' } }
    const found = await tokens.verify(await tokens.issue({ ...grant, ...bound }), a.id, signal)
    expect(found?.user.extra).to.deep.include({
      'authentication.kubernetes.io/pod-name': ['x'],
      'authentication.kubernetes.io/node-name': ['n'],
    })
  })

  it('are invalid if signed with another key or with no algorithm', async () => {
    const good = await tokens.issue(grant)
    const forger = createServiceAccountTokens({ privateKey: pem(), directory, find: async () => ({ uid: 'u1' }) })
    const unsigned = `${Buffer.from('{"alg":"none"}').toString('base64url')}.${good.split('.')[1] ?? ''}.`
    const hmac = await new SignJWT(decodeJwt(good))
      .setProtectedHeader({ alg: 'HS256' })
      .sign(Buffer.from(JSON.stringify(await tokens.keys())))
    for (const token of [await forger.issue(grant), unsigned, hmac]) {
      expect(tokens.hasOurIssuer(token)).to.equal(true)
      expect(await tokens.verify(token, a.id, signal)).to.equal(undefined)
    }
  })

  it('of other issuers are not claimed as ours', () => {
    for (const token of ['', 'x', 'a.b.c', `e30.${Buffer.from('{"iss":"https://other"}').toString('base64url')}.x`])
      expect(tokens.hasOurIssuer(token)).to.equal(false)
  })
})

function logicalCluster(name: string): LogicalCluster {
  const uid = `00000000-0000-4000-8000-00000000000${name}`
  return {
    name: name as ClusterName,
    id: clusterIdOf(uid),
    uid,
    creationTimestamp: '2026-01-01T00:00:00Z',
    owners: [],
    deleting: false,
  }
}
