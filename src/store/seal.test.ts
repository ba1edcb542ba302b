import { expect } from 'chai'
import type { ClusterId } from '#apimachinery/meta/index.ts'
import type { ObjectKey } from './store.ts'
import { Seal } from './seal.ts'

const key: ObjectKey = { cluster: 'abcdefghij' as ClusterId, resource: 'secrets', namespace: 'shop', name: 'db' }
const value = Buffer.from('{"kind":"Secret","data":{"password":"aHVudGVyMg=="}}')

describe('the seal on a payload', () => {
  const seal = new Seal(Buffer.alloc(32, 7))
  const closed = seal.close(key, value)

  it('opens to the original value', () => expect(Buffer.from(seal.open(key, closed))).to.deep.equal(value))

  it('hides the payload', () => {
    expect(closed).to.not.contain('hunter').and.to.not.contain('password')
    expect(Buffer.from(closed.split(':')[1] ?? '', 'base64').includes('password')).to.equal(false)
  })

  it('gives another text each time', () => expect(seal.close(key, value)).to.not.equal(closed))

  for (const other of ['cluster', 'resource', 'namespace', 'name'] as const) {
    it(`refuses to open as the object of another ${other}`, () => {
      const moved = { ...key, [other]: 'elsewhere' }
      expect(() => seal.open(moved, closed)).to.throw('its seal is broken')
    })
  }

  it('distinguishes a wrong key from damage', () => {
    expect(() => new Seal(Buffer.alloc(32, 8)).open(key, closed)).to.throw('was sealed with another key')
    const damaged = `${closed.slice(0, -8)}AAAAAAA=`
    expect(() => seal.open(key, damaged)).to.throw('its seal is broken')
  })

  it('opens what another of its keys has sealed, seals with the newest, and knows the difference', () => {
    const rotated = new Seal(Buffer.alloc(32, 8), { otherKeys: [Buffer.alloc(32, 7)] })
    expect(Buffer.from(rotated.open(key, closed))).to.deep.equal(value)
    const again = rotated.close(key, value)
    expect(() => seal.open(key, again)).to.throw('was sealed with another key')
    expect([rotated.isOfOtherKey(closed), rotated.isOfOtherKey(again)]).to.deep.equal([true, false])
  })

  it('refuses a key of another length', () => expect(() => new Seal(Buffer.alloc(16))).to.throw('16 bytes, not 32'))

  it('keeps a secret of 1 MiB of random bytes below what etcd takes', () => {
    const random = Buffer.alloc(1024 * 1024)
    for (let i = 0; i < random.length; i++) random[i] = (i * 2654435761 + (i >> 3) * 40503) & 0xff
    const secret = Buffer.from(JSON.stringify({ kind: 'Secret', data: { blob: random.toString('base64') } }))
    const sealed = seal.close(key, secret)
    expect(sealed.length).to.be.lessThan(1_500_000)
    expect(Buffer.from(seal.open(key, sealed)).equals(secret)).to.equal(true)
  })
})
