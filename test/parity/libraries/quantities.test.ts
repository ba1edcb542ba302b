// Compares quantities with Go's resource.Quantity: reading, printing, rounding, sums and order, and what expressions
// see of them.
import { expect } from 'chai'
import { parseQuantity, QuantityValue } from '#apimachinery/cel/kubernetes/quantity-value.ts'
import {
  addAmounts,
  printedQuantity,
  quantityError,
  quantityText,
  roundUpToMilli,
  tryQuantity,
  type Quantity,
} from '#apimachinery/quantity/index.ts'
import { askGo } from '#test/clients/oracle-program.ts'
import { isLongRun } from '#test/support/index.ts'
import { diceOf, type Dice } from '#test/parity/generated/dice.ts'

const seed = Number(process.env['KCP_SEED'] ?? 1)
const count = isLongRun ? 200_000 : 6000

const suffixes = [
  ...['', '', 'n', 'u', 'm', 'k', 'M', 'G', 'T', 'P', 'E', 'Ki', 'Mi', 'Gi', 'Ti', 'Pi', 'Ei'],
  ...[
    'e0',
    'e3',
    'E3',
    'e+2',
    'e-1',
    'e-3',
    'E-9',
    'e-12',
    'e9',
    'e18',
    'e20',
    'e70',
    'e',
    'K',
    'ki',
    'mi',
    'e+',
    'kk',
  ],
] as const

const known = [
  '0',
  '.',
  '-',
  '+',
  '+.',
  '-.Ei',
  '.Ei',
  '',
  ' ',
  '1 ',
  '1.1Gi',
  '8Ei',
  '9223372036854775807',
  '00',
  '1000E',
  '0x10',
]

function digits(dice: Dice, most: number): string {
  const text = Array.from({ length: dice.below(most + 1) }, () => String(dice.below(10))).join('')
  return dice.once(3) ? text.replace(/\d{1,6}$/, (end) => '0'.repeat(end.length)) : text
}

function randomQuantity(dice: Dice): string {
  const sign = dice.pick(['', '', '', '+', '-'])
  const whole = dice.once(4)
    ? dice.pick(['1024', '1000', '1', '1048576', '9223372036854775807', '1023'])
    : digits(dice, 20)
  const fraction = dice.once(3) ? `.${digits(dice, 12)}` : ''
  return `${sign}${whole}${fraction}${dice.pick(suffixes)}`
}

interface ApiResponse {
  readonly error?: string
  readonly printed: string
  readonly canonical: string
  readonly milli: string
  readonly format: string
  readonly sign: number
  readonly float: string
  readonly integer?: string
}

/** As Go's `%b`: exact. */
function binaryText(value: number): string {
  if (value === 0) return '0p-1074'
  const view = new DataView(new ArrayBuffer(8))
  view.setFloat64(0, value)
  const bits = view.getBigUint64(0)
  const exponent = Number((bits >> 52n) & 0x7ffn)
  const mantissa = bits & ((1n << 52n) - 1n)
  const full = exponent === 0 ? mantissa : mantissa | (1n << 52n)
  const power = (exponent === 0 ? 1 : exponent) - 1075
  return `${value < 0 ? '-' : ''}${full}p${power < 0 ? '' : '+'}${power}`
}

function ours(text: string): ApiResponse | { error: string } {
  const quantity = tryQuantity(text)
  const value = parseQuantity(text)
  if (quantity === undefined || !(value instanceof QuantityValue)) return { error: quantityError(text) }
  const printed = printedQuantity(text, quantity)
  const rounded = roundUpToMilli(quantity)
  const integer = value.asInt()
  return {
    printed,
    canonical: quantityText(quantity),
    milli: rounded.nanos === quantity.nanos ? printed : quantityText(rounded),
    format: quantity.format,
    sign: quantity.nanos < 0n ? -1 : quantity.nanos > 0n ? 1 : 0,
    float: binaryText(value.asDouble()),
    ...(integer === undefined ? {} : { integer: String(integer) }),
  }
}

function sumOf(a: Quantity, b: Quantity, sign: 1 | -1): string {
  const sum = new Map([['x', a]])
  addAmounts(sum, new Map([['x', b]]), sign)
  return quantityText(sum.get('x') ?? a)
}

describe('quantities equal those of Go', function () {
  this.timeout(isLongRun ? 600_000 : 120_000)
  const dice = diceOf(seed)
  const texts = [...known, ...Array.from({ length: count }, () => randomQuantity(dice))]

  it(`reads and prints ${texts.length} texts`, async () => {
    const responses = await askGo<ApiResponse>(texts.map((text) => ({ ask: 'quantity', args: [text] })))
    for (const [i, text] of texts.entries()) expect({ text, ...ours(text) }).to.deep.equal({ text, ...responses[i] })
  })

  it(`adds, subtracts and compares ${count} pairs`, async () => {
    const pairs = Array.from(
      { length: count },
      () => [dice.pick(texts as [string, ...string[]]), randomQuantity(dice)] as const,
    )
    const responses = await askGo<Record<string, unknown> | null>(pairs.map((args) => ({ ask: 'quantities', args })))
    for (const [i, [a, b]] of pairs.entries()) {
      const [x, y] = [tryQuantity(a), tryQuantity(b)]
      const [p, q] = [parseQuantity(a), parseQuantity(b)]
      if (!x || !y || !(p instanceof QuantityValue) || !(q instanceof QuantityValue)) {
        expect(responses[i], `${a} and ${b}`).to.equal(null)
        continue
      }
      const [sum, difference] = [p.plus(q, 1n), p.plus(q, -1n)]
      const integerOf = (value: QuantityValue): string | null => value.asInt()?.toString() ?? null
      expect({
        ...{ pair: [a, b], sum: sumOf(x, y, 1), difference: sumOf(x, y, -1) },
        ...{ sumInteger: integerOf(sum), differenceInteger: integerOf(difference) },
        compared: x.nanos < y.nanos ? -1 : x.nanos > y.nanos ? 1 : 0,
      }).to.deep.equal({ pair: [a, b], ...responses[i] })
      expect([sum.text, difference.text]).to.deep.equal([sumOf(x, y, 1), sumOf(x, y, -1)])
    }
  })
})
