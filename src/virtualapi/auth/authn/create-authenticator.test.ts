import { expect } from 'chai'
import { createHash, createSign, generateKeyPairSync, X509Certificate } from 'node:crypto'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type DetailedPeerCertificate, type TLSSocket } from 'node:tls'
import { clusterIdOf, type ClusterId, type ClusterName } from '#apimachinery/meta/index.ts'
import { isStatusError } from '#apimachinery/status/index.ts'
import type { ClusterDirectory, LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import type { ClusterScope, RequestInfo, EntryPoint } from '#virtualapi/request/request-info.ts'
import type { Authentication, Authenticator, AuthnRequest } from './authenticator.ts'
import { createAuthenticator, type AuthenticatorOptions } from './create-authenticator.ts'
import type { FrontProxyConfig } from './front-proxy.ts'
import type { MemberTokenClaim, MemberTokenIdentity } from './member-tokens.ts'
import {
  createCertificateAuthority,
  createPki,
  createPkiMaterial,
  signCertificate,
  type KeyPair,
  type Pki,
  type PkiMaterial,
} from './pki/index.ts'

const day = 24 * 60 * 60 * 1000
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

describe('authentication', () => {
  let material: PkiMaterial
  let pki: Pki
  let proxyCa: KeyPair
  let proxy: KeyPair
  let frontProxyConfig: FrontProxyConfig

  before(async () => {
    material = await createPkiMaterial()
    pki = createPki(material)
    proxyCa = await authority('requestheader-ca')
    proxy = await client(proxyCa, 'front-proxy-client')
    frontProxyConfig = {
      ca: proxyCa.certificate,
      allowedNames: ['front-proxy-client'],
      usernameHeaders: ['X-Remote-User'],
      groupHeaders: ['X-Remote-Group'],
      extraPrefixes: ['X-Remote-Extra-'],
      uidHeaders: ['X-Remote-Uid'],
    }
  })

  /** Returns the user, `anonymous`, or the code of the error. */
  async function ask(request: {
    entryPoint?: EntryPoint
    cluster?: LogicalCluster | 'all' | 'none' | 'missing'
    peer?: DetailedPeerCertificate
    headers?: string[]
    options?: Partial<AuthenticatorOptions>
  }) {
    const { entryPoint = 'direct', cluster = a, peer, headers = [], options = {} } = request
    const authenticator = createAuthenticator({ pki, directory, frontProxy: () => frontProxyConfig, ...options })
    try {
      const response = await authenticator.authenticate(
        {
          info: requestInfo(entryPoint, scopeOf(cluster)),
          rawHeaders: headers,
          peerCertificate: peer,
          cluster: typeof cluster === 'string' ? undefined : cluster,
        },
        signal,
      )
      return response ?? 'anonymous'
    } catch (error) {
      if (isStatusError(error)) return error.code
      throw error
    }
  }
  const issue = async (commonName: string, organizations: string[], realm: ClusterId | 'installation') =>
    peerOf(await pki.issueClientCertificate({ commonName, organizations, realm, days: 1 }))

  describe('by client certificate', () => {
    it('gives the subject, valid in the logical cluster of the realm', async () => {
      const peer = await issue('bob', ['dev', 'ops'], a.id)
      const fingerprint = createHash('sha256').update(peer.raw).digest('hex')
      expect(await ask({ peer })).to.deep.equal({
        user: {
          name: 'bob',
          groups: ['dev', 'ops', 'system:authenticated'],
          extra: { 'authentication.kubernetes.io/credential-id': [`X509SHA256=${fingerprint}`] },
          realm: { kind: 'cluster', id: a.id },
        },
      })
    })
    it('of the installation is valid in every logical cluster and above them', async () => {
      const peer = await issue('admin', ['system:masters'], 'installation')
      for (const cluster of [a, b, 'all', 'none', 'missing'] as const) {
        expect(await ask({ peer, cluster }), titleOf(cluster)).to.have.nested.property(
          'user.realm.kind',
          'installation',
        )
      }
    })
    it('of a is 401 in b, in a missing logical cluster, and over all', async () => {
      const peer = await issue('bob', ['system:masters'], a.id)
      for (const cluster of [b, 'missing', 'all'] as const) expect(await ask({ peer, cluster })).to.equal(401)
    })
    it('of a parent is valid below under names of its own, and nowhere else', async () => {
      const child = { ...logicalCluster('child'), parent: a.name }
      const peer = await issue('bob', ['system:masters'], a.id)
      expect(await ask({ peer, cluster: child })).to.deep.include({
        user: {
          ...((await ask({ peer })) as { user: object }).user,
          name: 'cluster:a:bob',
          groups: ['cluster:a:system:masters', 'system:authenticated'],
          home: ((await ask({ peer })) as { user: object }).user,
        },
      })
      for (const cluster of [b, { ...child, parent: b.name }, { ...child, parent: 'missing' as ClusterName }])
        expect(await ask({ peer, cluster })).to.equal(401)
      expect(await ask({ peer: await issue('bob', [], child.id), cluster: a })).to.equal(401)
    })
    it('with a name of a user of an ancestor is 401', async () => {
      expect(await ask({ peer: await issue('cluster:a:bob', [], b.id), cluster: b })).to.equal(401)
      expect(await ask({ peer: await issue('bob', ['cluster:a:system:masters'], b.id), cluster: b })).to.equal(401)
    })
    it('without a realm, with two realms, or with an invalid one is 401', async () => {
      for (const uris of [
        [],
        [`kcp://clusters/${b.id}`, 'kcp://installation'],
        ['kcp://clusters/'],
        ['KCP://installation'],
        ['kcp://installation/'],
        [`kcp://clusters/${a.id}/x`],
        ['https://kcp/installation'],
        ['kcp://x/, URI:kcp://installation'],
      ]) {
        expect(await ask({ peer: peerOf(await client(material.clientCa, 'bob', { uris })) }), uris.join()).to.equal(401)
      }
    })
    it('without a common name is 401', async () => {
      expect(
        await ask({ peer: peerOf(await client(material.clientCa, '', { uris: ['kcp://installation'] })) }),
      ).to.equal(401)
    })
    it('expired or not yet valid is 401, also if it was verified before', async () => {
      const uris = [`kcp://clusters/${a.id}`]
      const past = await client(material.clientCa, 'bob', { uris, from: -2 * day, to: -day })
      const future = await client(material.clientCa, 'bob', { uris, from: day, to: 2 * day })
      expect(await ask({ peer: peerOf(past) })).to.equal(401)
      expect(await ask({ peer: peerOf(future) })).to.equal(401)
      let now = Date.now()
      const authenticator = createAuthenticator({ pki, directory, clock: { now: () => now, monotonic: () => now } })
      const request = {
        info: requestInfo('direct', scopeOf(a)),
        rawHeaders: [],
        peerCertificate: peerOf(await client(material.clientCa, 'bob', { uris, to: day })),
        cluster: a,
      }
      expect(await authenticate(authenticator, request)).to.have.nested.property('user.name', 'bob')
      now += 2 * day
      expect(await authenticate(authenticator, request).catch((error: unknown) => error)).to.have.property('code', 401)
    })
    it('from another CA is 401, also from one with the same name, from the serving CA, and if it is self-signed', async () => {
      const uris = ['kcp://installation']
      const namesake = await authority('kcp-client-ca')
      const self = await authority('root')
      for (const pair of [
        await client(namesake, 'x', { uris }),
        await client(material.servingCa, 'x', { uris }),
        self,
      ]) {
        expect(await ask({ peer: peerOf(pair) })).to.equal(401)
      }
    })
    it('for servers is 401', async () => {
      const uris = ['kcp://installation']
      expect(await ask({ peer: peerOf(await client(material.clientCa, 'x', { uris, usage: 'server' })) })).to.equal(401)
    })
    it('signed by a certificate that is no authority is 401', async () => {
      const leaf = await client(material.clientCa, 'leaf', { uris: ['kcp://installation'], usage: 'server' })
      const forged = peerOf(await client(leaf, 'admin', { uris: ['kcp://installation'] }))
      forged.issuerCertificate = peerOf(leaf)
      expect(await ask({ peer: forged })).to.equal(401)
    })
    it('that is garbage is 401', async () => {
      expect(await ask({ peer: { raw: Buffer.from('no certificate') } as DetailedPeerCertificate })).to.equal(401)
    })
    it('is read from a real TLS connection; without one Node gives an empty object', async () => {
      const serving = await pki.servingCertificate()
      const pair = await pki.issueClientCertificate({ commonName: 'bob', organizations: [], realm: a.id, days: 1 })
      expect(await ask({ peer: await throughTls(serving, pki.servingCa, pair) })).to.have.nested.property(
        'user.name',
        'bob',
      )
      expect(await ask({ peer: await throughTls(serving, pki.servingCa, undefined) })).to.equal('anonymous')
    })
  })

  describe('by the front proxy', () => {
    const identity = ['X-Remote-User', 'alice', 'X-Remote-Group', 'dev', 'x-remote-group', 'system:authenticated']

    it('gives the user in the headers, as a host identity', async () => {
      const headers = [
        ...identity,
        'X-Remote-Uid',
        '7',
        'X-Remote-Extra-Acme.com%2fTeam',
        'blue',
        'X-Remote-Extra-acme.com%2Fteam',
        'red',
      ]
      expect(await ask({ entryPoint: 'aggregated', peer: peerOf(proxy), headers })).to.deep.equal({
        user: {
          name: 'alice',
          uid: '7',
          groups: ['dev', 'system:authenticated'],
          extra: Object.assign(Object.create(null) as object, { 'acme.com/team': ['blue', 'red'] }),
          realm: { kind: 'host' },
        },
      })
    })
    it('takes a header value with a comma for one group', async () => {
      const headers = ['X-Remote-User', 'alice', 'X-Remote-Group', 'dev, system:masters', 'X-Remote-Group', 'a,b']
      expect(await ask({ entryPoint: 'aggregated', peer: peerOf(proxy), headers }))
        .to.have.nested.property('user.groups')
        .deep.equal(['dev, system:masters', 'a,b'])
    })
    for (const [from, to] of [
      ['system:serviceaccount:shop:deployer', 'host:system:serviceaccount:shop:deployer'],
      ['system:admin', 'host:system:admin'],
      ['host:system:serviceaccount:shop:deployer', 'host:host:system:serviceaccount:shop:deployer'],
      ['cluster:acme:alice', 'host:cluster:acme:alice'],
      ['alice', 'alice'],
    ]) {
      it(`renames the host user "${from}" to "${to}"`, async () => {
        const headers = [
          'X-Remote-User',
          from!,
          'X-Remote-Group',
          'system:masters',
          'X-Remote-Group',
          'system:authenticated',
        ]
        const response = await ask({ entryPoint: 'aggregated', peer: peerOf(proxy), headers })
        expect(response).to.have.nested.property('user.name', to)
        expect(response)
          .to.have.nested.property('user.groups')
          .deep.equal(['host:system:masters', 'system:authenticated'])
      })
    }
    it('is anonymous if the headers say so, or are absent', async () => {
      for (const headers of [[], ['X-Remote-User', 'system:anonymous', 'X-Remote-Group', 'system:unauthenticated']]) {
        expect(await ask({ entryPoint: 'aggregated', peer: peerOf(proxy), headers })).to.equal('anonymous')
      }
    })
    it('ignores a bearer token beside it', async () => {
      const headers = [...identity, 'Authorization', 'Bearer nonsense']
      expect(await ask({ entryPoint: 'aggregated', peer: peerOf(proxy), headers })).to.have.nested.property(
        'user.name',
        'alice',
      )
    })
    it('is accepted on discovery paths outside logical clusters', async () => {
      expect(await ask({ cluster: 'none', peer: peerOf(proxy), headers: identity })).to.have.nested.property(
        'user.name',
        'alice',
      )
    })
    it('headers without a certificate are ignored', async () => {
      const headers = ['X-Remote-User', 'admin', 'X-Remote-Group', 'system:masters']
      for (const entryPoint of ['direct', 'aggregated', 'unprefixed'] as const) {
        for (const cluster of [a, 'all', 'none'] as const) {
          expect(await ask({ entryPoint, cluster, headers }), `${entryPoint} ${titleOf(cluster)}`).to.equal('anonymous')
        }
      }
    })
    it('headers beside a client certificate are ignored', async () => {
      const peer = await issue('bob', ['dev'], a.id)
      const headers = ['X-Remote-User', 'admin', 'X-Remote-Group', 'system:masters']
      for (const entryPoint of ['direct', 'aggregated', 'unprefixed'] as const) {
        expect(await ask({ entryPoint, peer, headers }), entryPoint).to.have.nested.property('user.name', 'bob')
      }
    })
    it('certificate is 401 on direct paths of logical clusters', async () => {
      for (const cluster of [a, 'all', 'missing'] as const) {
        expect(await ask({ cluster, peer: peerOf(proxy), headers: identity })).to.equal(401)
      }
    })
    it('certificate under a name that is not allowed is 401', async () => {
      const other = await client(proxyCa, 'somebody-else')
      expect(await ask({ entryPoint: 'aggregated', peer: peerOf(other), headers: identity })).to.equal(401)
    })
    it('is 401 with an empty list of allowed names', async () => {
      const options = { frontProxy: () => ({ ...frontProxyConfig, allowedNames: [] }) }
      expect(await ask({ entryPoint: 'aggregated', peer: peerOf(proxy), headers: identity, options })).to.equal(401)
    })
    it('certificate from our own client authority is 401, whatever its name', async () => {
      const cuckoo = await pki.issueClientCertificate({
        commonName: 'front-proxy-client',
        organizations: [],
        realm: b.id,
        days: 1,
      })
      expect(await ask({ entryPoint: 'aggregated', peer: peerOf(cuckoo), headers: identity })).to.equal(401)
    })
    it('certificate from the requestheader authority with a realm is no client certificate', async () => {
      const pair = await client(proxyCa, 'front-proxy-client', { uris: ['kcp://installation'] })
      expect(await ask({ peer: peerOf(pair), headers: identity })).to.equal(401)
    })
    it('is refused before the ConfigMap of the host was read', async () => {
      expect(
        await ask({
          entryPoint: 'aggregated',
          peer: peerOf(proxy),
          headers: identity,
          options: { frontProxy: () => undefined },
        }),
      ).to.equal(401)
    })
    it('follows a rotation: only the new authority is trusted', async () => {
      let config = frontProxyConfig
      const authenticator = createAuthenticator({ pki, directory, frontProxy: () => config })
      const request = {
        info: requestInfo('aggregated', scopeOf(a)),
        rawHeaders: identity,
        peerCertificate: peerOf(proxy),
        cluster: a,
      }
      expect(await authenticate(authenticator, request)).to.have.nested.property('user.name', 'alice')
      config = { ...config, ca: (await authority('requestheader-ca')).certificate }
      expect(await authenticate(authenticator, request).catch((error: unknown) => error)).to.have.property('code', 401)
    })
  })

  describe("by a member pod's token", () => {
    const keys = generateKeyPairSync('ec', { namedCurve: 'P-256' })
    const inHour = () => Math.floor(Date.now() / 1000) + 3600
    const jwt = (payload: object, key = keys.privateKey): string => {
      const text = [
        { alg: 'ES256', typ: 'JWT' },
        { sub: `system:serviceaccount:${a.id}-shop:web`, ...payload },
      ]
        .map((part) => Buffer.from(JSON.stringify(part)).toString('base64url'))
        .join('.')
      return `${text}.${createSign('sha256').update(text).sign({ key, dsaEncoding: 'ieee-p1363' }, 'base64url')}`
    }
    const pod: MemberTokenIdentity = {
      serviceAccount: { namespace: `${a.id}-shop`, name: 'web' },
      podName: 'web-0',
      podUid: 'pod-1',
    }
    /** A member that verifies the signature and counts the reviews. */
    function member(identity: MemberTokenIdentity | undefined = pod, placed = (): boolean => true) {
      const asked: string[] = []
      const looked: MemberTokenClaim[] = []
      return {
        asked,
        looked,
        findPlacedAccount: async (claim: MemberTokenClaim) => {
          looked.push(claim)
          return placed() ? { uid: 'sa-1' } : undefined
        },
        verify: async (memberId: string, token: string) => {
          asked.push(memberId)
          const { jwtVerify } = await import('jose')
          const verified = await jwtVerify(token, keys.publicKey).catch(() => undefined)
          return memberId === 'member-1' && verified !== undefined ? identity : undefined
        },
      }
    }
    const bearer = (token: string) => ['authorization', `Bearer ${token}`]
    const good = () => jwt({ aud: [`${a.id}.member-1`], exp: inHour() })

    it('gives the upstream ServiceAccount in its logical cluster', async () => {
      expect(await ask({ headers: bearer(good()), options: { memberTokens: member() } })).to.deep.equal({
        user: {
          name: 'system:serviceaccount:shop:web',
          uid: 'sa-1',
          groups: ['system:serviceaccounts', 'system:serviceaccounts:shop', 'system:authenticated'],
          extra: {
            'authentication.kubernetes.io/pod-name': ['web-0'],
            'authentication.kubernetes.io/pod-uid': ['pod-1'],
          },
          realm: { kind: 'cluster', id: a.id },
        },
      })
    })
    it('is read up to the next space', async () => {
      const options = { memberTokens: member() }
      expect(await ask({ headers: bearer(`${good()} more`), options })).to.have.nested.property('user.uid', 'sa-1')
      expect(await ask({ headers: bearer('not valid'), options })).to.equal(401)
    })
    it('gives the logical cluster if the path has none', async () => {
      const response = await ask({
        entryPoint: 'unprefixed',
        cluster: 'none',
        headers: bearer(good()),
        options: { memberTokens: member() },
      })
      expect(response).to.have.property('cluster', a)
    })
    it('of a is 401 in b, in a missing logical cluster, and over all', async () => {
      for (const cluster of [b, 'missing', 'all'] as const) {
        expect(
          await ask({ cluster, headers: bearer(good()), options: { memberTokens: member() } }),
          titleOf(cluster),
        ).to.equal(401)
      }
    })
    for (const { title, payload } of [
      { title: 'for another member', payload: { aud: `${a.id}.member-2`, exp: inHour() } },
      { title: 'for the member itself', payload: { aud: ['https://kubernetes.default.svc'], exp: inHour() } },
      { title: 'for an invalid id', payload: { aud: ['shop.member-1'], exp: inHour() } },
      { title: 'expired', payload: { aud: [`${a.id}.member-1`], exp: inHour() - 7200 } },
      { title: 'without an expiry', payload: { aud: [`${a.id}.member-1`] } },
      { title: 'for two members', payload: { aud: [`${a.id}.member-1`, `${a.id}.member-2`], exp: inHour() } },
    ]) {
      it(`${title} is 401`, async () => {
        expect(await ask({ headers: bearer(jwt(payload)), options: { memberTokens: member() } })).to.equal(401)
      })
    }
    it('for two logical clusters is 401 if the path names none', async () => {
      const headers = bearer(jwt({ aud: [`${a.id}.member-1`, `${b.id}.member-1`], exp: inHour() }))
      expect(
        await ask({ entryPoint: 'unprefixed', cluster: 'none', headers, options: { memberTokens: member() } }),
      ).to.equal(401)
    })
    it('is reviewed for its own logical cluster and the audiences asked for', async () => {
      const reviewer = createAuthenticator({ pki, directory, memberTokens: member() })
      const review = async (audiences: string[], cluster = a) =>
        (await reviewer.reviewToken(good(), audiences, cluster, signal))?.audiences
      expect(await review([])).to.deep.equal(['https://kubernetes.default.svc'])
      expect(await review(['https://kubernetes.default.svc', 'x'])).to.deep.equal(['https://kubernetes.default.svc'])
      expect(await review([`${a.id}.member-1`])).to.deep.equal([`${a.id}.member-1`])
      expect(await review(['x'])).to.equal(undefined)
      expect(await review([], b)).to.equal(undefined)
    })
    it('is 401 if no workload placed on the member uses its ServiceAccount, and the member is not asked', async () => {
      const asked = member(pod, () => false)
      expect(await ask({ headers: bearer(good()), options: { memberTokens: asked } })).to.equal(401)
      expect(asked.looked).to.have.length(1)
      expect(asked.looked[0]).to.include({ memberId: 'member-1', namespace: 'shop', serviceAccount: 'web' })
      expect(asked.asked).to.deep.equal([])
    })
    it('is 401 once the last workload has left the member, although its review is cached', async () => {
      let placed = true
      const authenticator = createAuthenticator({ pki, directory, memberTokens: member(pod, () => placed) })
      const request = {
        info: requestInfo('direct', scopeOf(a)),
        rawHeaders: bearer(good()),
        peerCertificate: undefined,
        cluster: a,
      }
      expect((await authenticate(authenticator, request))?.user.uid).to.equal('sa-1')
      placed = false
      expect(
        await authenticate(authenticator, request).catch((error: unknown) => (error as { code?: number }).code),
      ).to.equal(401)
    })
    it('is 401 if the member confirms another ServiceAccount', async () => {
      for (const serviceAccount of [
        { namespace: `${b.id}-shop`, name: 'web' },
        { namespace: `${a.id}-shop`, name: 'admin' },
      ])
        expect(
          await ask({ headers: bearer(good()), options: { memberTokens: member({ serviceAccount }) } }),
          serviceAccount.name,
        ).to.equal(401)
    })
    it('of a ServiceAccount outside of logical clusters is 401, and neither scheduler nor member is asked', async () => {
      for (const namespace of ['kube-system', `${a.id}-`, a.id, `${b.id}-shop`]) {
        const asked = member()
        const token = jwt({ aud: [`${a.id}.member-1`], exp: inHour(), sub: `system:serviceaccount:${namespace}:web` })
        expect(await ask({ headers: bearer(token), options: { memberTokens: asked } }), namespace).to.equal(401)
        expect([...asked.asked, ...asked.looked], namespace).to.deep.equal([])
      }
    })
    it('with a wrong signature is 401', async () => {
      const other = generateKeyPairSync('ec', { namedCurve: 'P-256' })
      const headers = bearer(jwt({ aud: [`${a.id}.member-1`], exp: inHour() }, other.privateKey))
      expect(await ask({ headers, options: { memberTokens: member() } })).to.equal(401)
    })
    it('that is malformed is 401, without a TokenReview', async () => {
      const asked = member()
      for (const token of ['abc', 'a.b.c', 'x'.repeat(100_000), jwt({})]) {
        expect(await ask({ headers: bearer(token), options: { memberTokens: asked } })).to.equal(401)
      }
      expect(asked.asked).to.deep.equal([])
    })
    it('is not reviewed after 30 invalid tokens of the same peer, unless a cached review says that it is valid', async () => {
      const asked = member()
      let now = 0
      const clock = { now: () => Date.now(), monotonic: () => now }
      const authenticator = createAuthenticator({ pki, directory, memberTokens: asked, clock })
      const info = requestInfo('direct', scopeOf(a))
      const codeOf = async (token: string, peerAddress: string): Promise<number> => {
        const request = { info, rawHeaders: bearer(token), peerCertificate: undefined, peerAddress, cluster: a }
        return authenticate(authenticator, request).then(
          () => 200,
          (error: unknown) => (isStatusError(error) ? error.code : 0),
        )
      }
      const [known, fresh] = [good(), jwt({ aud: [`${a.id}.member-1`], exp: inHour() + 1 })]
      expect(await codeOf(known, '192.0.2.1')).to.equal(200)
      const invalid = Array.from({ length: 100 }, (_, i) => jwt({ aud: [`${a.id}.member-9`], exp: inHour() + i }))
      const codes = await Promise.all(invalid.map((token) => codeOf(token, '192.0.2.1')))
      expect(codes.filter((code) => code === 401)).to.have.length(30)
      expect(codes.filter((code) => code === 429)).to.have.length(70)
      expect(asked.asked).to.have.length(31)
      expect(await codeOf(known, '192.0.2.1')).to.equal(200)
      expect(await codeOf(fresh, '192.0.2.1')).to.equal(429)
      expect(await codeOf(fresh, '192.0.2.2')).to.equal(200)
      now += 2000
      expect(await codeOf(jwt({ aud: [`${a.id}.member-1`], exp: inHour() + 2 }), '192.0.2.1')).to.equal(200)
    })
    it('is reviewed once while its result is cached, valid or not', async () => {
      const asked = member()
      let now = Date.now()
      // The wall clock runs backwards here: it must not matter for how long a result is cached.
      const start = now
      const clock = { now: () => 2 * start - now, monotonic: () => now - start }
      const authenticator = createAuthenticator({ pki, directory, memberTokens: asked, clock })
      const request = {
        info: requestInfo('direct', scopeOf(a)),
        rawHeaders: bearer(good()),
        peerCertificate: undefined,
        cluster: a,
      }
      for (let i = 0; i < 3; i++) await authenticate(authenticator, request)
      expect(asked.asked).to.have.length(1)
      now += 61_000
      await authenticate(authenticator, request)
      expect(asked.asked).to.have.length(2)
      const bad = { ...request, rawHeaders: bearer(jwt({ aud: [`${a.id}.member-9`], exp: inHour() })) }
      for (let i = 0; i < 3; i++) await authenticate(authenticator, bad).catch(() => undefined)
      expect(asked.asked).to.have.length(3)
      now += 6_000
      await authenticate(authenticator, bad).catch(() => undefined)
      expect(asked.asked).to.have.length(4)
    })
  })

  it('without credentials is anonymous; basic authentication is ignored', async () => {
    expect(await ask({})).to.equal('anonymous')
    expect(await ask({ headers: ['Authorization', 'Basic YTpi'] })).to.equal('anonymous')
  })
})

function logicalCluster(name: string): LogicalCluster {
  const uid = `uid-${name}`
  return {
    name: name as ClusterName,
    id: clusterIdOf(uid),
    uid,
    creationTimestamp: '2026-01-01T00:00:00Z',
    owners: [],
    deleting: false,
  }
}

function titleOf(cluster: LogicalCluster | string): string {
  return typeof cluster === 'string' ? cluster : cluster.name
}

function scopeOf(cluster: LogicalCluster | 'all' | 'none' | 'missing'): ClusterScope {
  if (cluster === 'all' || cluster === 'none') return { kind: cluster }
  return { kind: 'one', name: cluster === 'missing' ? ('missing' as ClusterName) : cluster.name }
}

function requestInfo(entryPoint: EntryPoint, cluster: ClusterScope): RequestInfo {
  return {
    entryPoint,
    cluster,
    verb: 'get',
    method: 'GET',
    target: { kind: 'path', path: '/version' },
    query: new URLSearchParams(),
    basePath: '',
  }
}

function authority(commonName: string): Promise<KeyPair> {
  return createCertificateAuthority({
    commonName,
    notBefore: new Date(Date.now() - 3 * day),
    notAfter: new Date(Date.now() + 3650 * day),
  })
}

function client(
  by: KeyPair,
  commonName: string,
  {
    uris = [],
    from = -day,
    to = day,
    usage = 'client',
  }: { uris?: string[]; from?: number; to?: number; usage?: 'client' | 'server' } = {},
): Promise<KeyPair> {
  const [notBefore, notAfter] = [new Date(Date.now() + from), new Date(Date.now() + to)]
  return signCertificate(by, { subject: { commonName }, usage, uris, notBefore, notAfter })
}

/** A peer certificate as node:tls gives it, with only the members that are read. */
function peerOf({ certificate }: KeyPair): DetailedPeerCertificate {
  return { raw: new X509Certificate(certificate).raw } as DetailedPeerCertificate
}

/** What the server side of a real connection sees of the client. */
async function throughTls(serving: KeyPair, ca: string, pair: KeyPair | undefined): Promise<DetailedPeerCertificate> {
  const server = createServer({
    cert: serving.certificate,
    key: serving.key,
    requestCert: true,
    rejectUnauthorized: false,
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'secureConnection') as Promise<[TLSSocket]>
  const identity = pair === undefined ? {} : { cert: pair.certificate, key: pair.key }
  const socket = connect({ port: (server.address() as AddressInfo).port, host: '127.0.0.1', ca, ...identity })
  try {
    const [connection] = await accepted
    return connection.getPeerCertificate(true)
  } finally {
    socket.destroy()
    server.close()
  }
}

/** Rejects where the authenticator throws. */
async function authenticate(authenticator: Authenticator, request: AuthnRequest): Promise<Authentication | undefined> {
  return await authenticator.authenticate(request, signal)
}
