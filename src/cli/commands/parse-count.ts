// Parses the value of a flag that is a count.
import { InvalidArgumentError } from 'commander'

/** A whole number, 0 or more. Throws InvalidArgumentError, which commander prints with the flag's name. */
export function parseCount(text: string): number {
  const count = Number(text)
  if (!Number.isInteger(count) || count < 0) throw new InvalidArgumentError('it must be a whole number, 0 or more')
  return count
}
