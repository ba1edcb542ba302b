// JSON number literals around the bounds of doubles and of integers of 64 bits.
import { diceOf } from '#test/parity/generated/dice.ts'

const written = [
  ...['0', '-0', '1', '-1', '1.0', '0.5', '1e3', '1E3', '1e-3', '1e17', '1.5e3', '123456789012345678e0'],
  ...['1234567890123456789', '9999999999999999', '100000000000000000000', '123456789012345678901234567890'],
  ...['9007199254740993.0', '0.1234567890123456789', '1e20', '1e21', '1e22', '1E400', '-1E400', '1e-400'],
]

/**
 * Literals at and around each bound (`thorough`: more of them), others that are written in unusual ways, and `random`
 * more.
 */
export function numberLiterals({
  thorough,
  random,
  seed,
}: {
  thorough: boolean
  random: number
  seed: number
}): string[] {
  const powers = thorough ? [31n, 32n, 53n, 63n, 64n] : [53n, 63n]
  const steps = thorough ? [-2n, -1n, 0n, 1n, 2n] : [-1n, 0n, 1n]
  const bounds = powers.flatMap((power) =>
    [2n ** power, -(2n ** power)].flatMap((bound) => steps.map((step) => String(bound + step))),
  )
  const dice = diceOf(seed)
  const digits = (count: number): string => Array.from({ length: count }, () => dice.below(10)).join('')
  const made = Array.from({ length: random }, () => {
    const whole = `${dice.once(3) ? '-' : ''}${1 + dice.below(9)}${digits(dice.below(21))}`
    const fraction = dice.once(4) ? `.${digits(1 + dice.below(18))}` : ''
    return `${whole}${fraction}${dice.once(5) ? `e${dice.pick(['', '+', '-'])}${dice.below(25)}` : ''}`
  })
  return [...new Set([...written, ...bounds, ...made])]
}
