// Parses the value of a flag that is a host name or an IP address.
import { isIP } from 'node:net'
import { InvalidArgumentError } from 'commander'

const name = /^[a-z0-9]([-_a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-_a-z0-9]{0,61}[a-z0-9])?)*\.?$/i

/** The text as it is. Throws InvalidArgumentError, which commander prints with the flag's name. */
export function parseHost(text: string): string {
  if (isIP(text) === 0 && (!name.test(text) || /^[\d.]+$/.test(text)))
    throw new InvalidArgumentError('it must be a host name or an IP address, without https:// and port')
  return text
}
