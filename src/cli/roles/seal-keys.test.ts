import { expect } from 'chai'
import { sealKeysOf, withNextKey, withNextKeyInUse, withoutFormerKeys } from './seal-keys.ts'

type SecretData = Readonly<Record<string, string>>

describe('the keys that seal Secrets in a host', () => {
  const first: SecretData = { 'ca.key': 'pem', 'seal.key': Buffer.alloc(32, 1).toString('base64') }
  const numbers = (data: SecretData): { seals: number | undefined; others: number } => {
    const { sealKey, otherSealKeys } = sealKeysOf(data, 'kcp-system/keys')
    return { seals: sealKey[0], others: otherSealKeys.length }
  }

  it('are known everywhere before they seal, and open for as long as they are kept', () => {
    const added = withNextKey(first)
    expect(numbers(added)).to.deep.equal({ seals: 1, others: 1 })
    const used = withNextKeyInUse(added)
    expect(used['seal.key']).to.equal(added['seal.next'])
    expect(numbers(used).others).to.equal(1)
    const again = withNextKeyInUse(withNextKey(used))
    expect(numbers(again).others).to.equal(2)
    expect(sealKeysOf(again, '').otherSealKeys.map((key) => Buffer.from(key).toString('base64'))).to.have.members([
      first['seal.key'],
      used['seal.key'],
    ])
    expect(withoutFormerKeys(again)).to.deep.equal({ 'ca.key': 'pem', 'seal.key': again['seal.key'] })
  })

  it('are not replaced out of order', () => {
    expect(() => withNextKeyInUse(first)).to.throw('kcp seal-key add')
    expect(() => withNextKey(withNextKey(first))).to.throw('kcp seal-key use')
    expect(() => sealKeysOf({}, 'kcp-system/keys')).to.throw('restore it')
  })
})
