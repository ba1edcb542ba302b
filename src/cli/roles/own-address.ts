// An address of this machine by which others reach it.
import { networkInterfaces } from 'node:os'
import { ExitError } from '../process/exit-error.ts'

/** The first address that is not a loopback; the machine's own networks before bridges and tunnels made on it. */
export function ownAddress(): string {
  const found: { address: string; made: boolean }[] = []
  for (const [name, addresses = []] of Object.entries(networkInterfaces()))
    for (const { address, family, internal } of addresses)
      if (!internal && family === 'IPv4')
        found.push({ address, made: /^(docker|br-|veth|cni|virbr|tun|kcp)/.test(name) })
  const best = found.find(({ made }) => !made) ?? found[0]
  if (best === undefined) throw new ExitError('this machine has no address but the loopback: give --advertise-address')
  return best.address
}
