// Parses the value of a flag that is a port.
import { InvalidArgumentError } from 'commander'

/** A whole number from 0 to 65535. Throws InvalidArgumentError, which commander prints with the flag's name. */
export function parsePort(text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 0 || port > 65535)
    throw new InvalidArgumentError('a port is a number from 0 to 65535')
  return port
}
