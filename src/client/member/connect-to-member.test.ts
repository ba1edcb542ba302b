import { expect } from 'chai'
import { UnsecuredJWT } from 'jose'
import { stringify } from 'yaml'
import { isMemberTokenDue, withMemberToken } from './connect-to-member.ts'

const day = 24 * 3600
const start = 1_800_000_000
const own = 'system:serviceaccount:kcp-system:kcp-syncer'
const kubeconfig = (token: string) => stringify({ clusters: [{ name: 'm' }], users: [{ name: 'u', user: { token } }] })
const jwt = (claims: object, sub = own) => new UnsecuredJWT({ sub, ...claims }).encode()

describe('the token for a member', () => {
  for (const { title, token, at, due } of [
    { title: 'is due after half of its life', token: jwt({ iat: start, exp: start + day }), at: day / 2, due: true },
    { title: 'is not due before', token: jwt({ iat: start, exp: start + day }), at: day / 2 - 1, due: false },
    { title: 'is due after it has expired', token: jwt({ iat: start, exp: start + day }), at: 2 * day, due: true },
    { title: 'is never due if it does not expire', token: jwt({ iat: start }), at: 9 * day, due: false },
    {
      title: "is left alone if it is somebody else's",
      token: jwt({ iat: start, exp: start + day }, 'x'),
      at: day,
      due: false,
    },
    { title: 'is left alone if it is not a JWT', token: 'secret', at: day, due: false },
  ])
    it(title, () => expect(isMemberTokenDue(kubeconfig(token), (start + at) * 1000)).to.equal(due))

  it('is replaced, and nothing else changes', () => {
    expect(withMemberToken(kubeconfig('old'), 'new')).to.equal(kubeconfig('new'))
    expect(isMemberTokenDue('no: kubeconfig', 0)).to.equal(false)
  })
})
