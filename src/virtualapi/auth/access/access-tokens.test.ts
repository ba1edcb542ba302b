import { expect } from 'chai'
import { generateKeyPairSync } from 'node:crypto'
import { decodeJwt, SignJWT } from 'jose'
import { accessSeconds, createAccessTokens, type AccessTarget } from './access-tokens.ts'

const { signal } = new AbortController()
const newKey = () => generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
const pem = (key: ReturnType<typeof newKey>): string => key.export({ type: 'pkcs8', format: 'pem' }).toString()
const target: AccessTarget = { kind: 'MemberCluster', name: 'eu-1', uid: 'u1' }
const holder = { realm: 'host', name: 'fleet', groups: ['system:authenticated'] } as const

describe('tokens for the use of a cluster', () => {
  const key = newKey()
  let now = Date.parse('2026-01-01T00:00:00Z')
  const clock = { now: () => now, monotonic: () => now }
  const tokens = createAccessTokens({ privateKey: pem(key), clock })

  it('say who asked for what, for ten minutes', async () => {
    const issued = await tokens.issue({ target, holder })
    const { token = '' } = issued ?? {}
    expect(await tokens.verify(token, signal)).to.deep.include({ target, holder })
    now += accessSeconds * 1000
    expect(await tokens.verify(token, signal), 'a token that was verified before').to.equal(undefined)
    const again = createAccessTokens({ privateKey: pem(key), clock })
    expect(await again.verify(token, signal)).to.equal(undefined)
  })

  it('are valid only as this server has signed them', async () => {
    const { token = '' } = (await tokens.issue({ target, holder })) ?? {}
    const other = createAccessTokens({ privateKey: pem(newKey()), clock })
    expect(await other.verify(token, signal), 'of another installation').to.equal(undefined)
    const claims = decodeJwt(token)
    const sign = (change: object, typ = 'kcp-access+jwt', by = key): Promise<string> =>
      new SignJWT({ ...claims, ...change }).setProtectedHeader({ alg: 'ES256', typ }).sign(by)
    expect(await tokens.verify(await sign({}), signal)).to.deep.include({ target })
    for (const [what, text] of [
      ['of another type, such as that of a ServiceAccount', await sign({}, 'JWT')],
      ['of another issuer', await sign({ iss: 'https://kubernetes.default.svc/clusters/abc' })],
      ['whose audience is another cluster', await sign({ aud: 'https://kcp.dev/access/MemberCluster/u2' })],
      ['whose target is not its audience', await sign({ target: { ...target, uid: 'u2' } })],
      ['with several audiences', await sign({ aud: [claims.aud, 'https://kcp.dev/access/MemberCluster/u2'] })],
      ['without an end', await sign({ exp: undefined })],
      ['that begins later', await sign({ nbf: now / 1000 + 60 })],
      ['of another key', await sign({}, 'kcp-access+jwt', newKey())],
      ['without a signature', `${token.split('.').slice(0, 2).join('.')}.`],
    ] as const)
      expect(await tokens.verify(text, signal), `a token ${what}`).to.equal(undefined)
  })

  it('are not made for a user with more groups than a header holds', async () => {
    const groups = Array.from({ length: 1000 }, (_, i) => `group-${i}`)
    expect(await tokens.issue({ target, holder: { ...holder, groups } })).to.equal(undefined)
  })
})
