// A flag that counts something.
import { InvalidArgumentError } from 'commander'

/** A whole number, 0 or more. Throws InvalidArgumentError, which commander tells with the flag's name. */
export function parseCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 0) throw new InvalidArgumentError('it is a whole number, 0 or more')
  return count
}
