import { expect } from 'chai'
import { printedQuantity, quantityText, roundUpToMilli, tryQuantity } from './quantity.ts'

describe('quantities', () => {
  for (const [text, canonical] of [
    ['0', '0'],
    ['0Mi', '0'],
    ['1000m', '1'],
    ['1500m', '1500m'],
    ['0.5', '500m'],
    ['.5Gi', '512Mi'],
    ['1.5Gi', '1536Mi'],
    ['1024Mi', '1Gi'],
    ['1000', '1k'],
    ['2147483648', '2147483648'],
    ['12e6', '12e6'],
    ['1E', '1E'],
    ['100Ki', '100Ki'],
    ['512', '512'],
    ['-1Gi', '-1Gi'],
    ['+5', '5'],
    ['1u', '1u'],
    ['.', '0'],
    ['1.1Gi', '1181116006400m'],
  ] as const)
    it(`${text} is printed as ${canonical}`, () => {
      const quantity = tryQuantity(text)
      expect(quantity && quantityText(quantity)).to.equal(canonical)
    })

  for (const text of ['', 'lots', '1 Gi', '1gi', '--1', '1.2.3', '1e', '0x10', '.Ei'])
    it(`${JSON.stringify(text)} is not a quantity`, () => expect(tryQuantity(text)).to.equal(undefined))

  // As resource.Quantity of apimachinery 0.34.3 prints them.
  for (const [text, printed] of [
    ['+1', '+1'],
    ['001', '001'],
    ['5.', '5.'],
    ['1.Gi', '1.Gi'],
    ['1E3', '1E3'],
    ['1e+3', '1e+3'],
    ['1.500', '1.500'],
    ['1.123456789', '1.123456789'],
    ['1.5', '1500m'],
    ['1000m', '1'],
    ['1000', '1k'],
    ['8Mi', '8Mi'],
    ['1024Ki', '1Mi'],
    ['.500', '500m'],
    ['1e4', '10e3'],
    ['00', '0'],
  ] as const)
    it(`Go prints ${text} as ${printed}`, () => {
      const quantity = tryQuantity(text)
      expect(quantity && printedQuantity(text, quantity)).to.equal(printed)
    })

  it('refuses long text quickly', () => {
    const started = performance.now()
    for (const text of [
      `${'1'.repeat(200_000)}!`,
      '1'.repeat(2_000_000),
      `1.${'1'.repeat(200_000)}!`,
      `1e${'0'.repeat(200_000)}!`,
    ])
      expect(tryQuantity(text)).to.equal(undefined)
    expect(performance.now() - started).to.be.lessThan(3000)
  })

  it('are rounded up to thousandths in resource lists', () => {
    const quantity = tryQuantity('1.0001')
    expect(quantity && quantityText(roundUpToMilli(quantity))).to.equal('1001m')
  })
})
