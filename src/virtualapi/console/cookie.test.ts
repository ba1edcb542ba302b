import { expect } from 'chai'
import { proxiedHeaders } from '#virtualapi/endpoints/forwarded/proxy-exchange.ts'
import { consoleCookie, withoutConsoleCookie } from '#virtualapi/request/console-cookie.ts'

describe('the cookie of the console', () => {
  for (const [given, kept] of [
    [`${consoleCookie}=x`, ''],
    [`a=b; ${consoleCookie}=x; c=d`, 'a=b; c=d'],
    [`${consoleCookie}=x;a=b;  ${consoleCookie}=y`, 'a=b'],
    ['a=b; c=d', 'a=b; c=d'],
  ] as const)
    it(`is taken out of ${JSON.stringify(given)}`, () => expect(withoutConsoleCookie(given)).to.equal(kept))

  it('is removed from what pods and aggregated servers get', () => {
    const headers = proxiedHeaders(['Cookie', `${consoleCookie}=x; app=1`, 'cookie', `${consoleCookie}=x`], {
      upgrade: false,
    })
    expect(headers).to.deep.equal({ cookie: 'app=1' })
  })
})
