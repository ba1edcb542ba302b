// Finds an address of this machine at which others can reach it.
import { networkInterfaces } from 'node:os'
import { ExitError } from '#cli/process/exit-error.ts'

/** The first non-loopback address; physical networks come before bridges and tunnels. */
export function ownAddress(): string {
  const found: { address: string; isVirtual: boolean }[] = []
  for (const [name, addresses = []] of Object.entries(networkInterfaces()))
    for (const { address, family, internal } of addresses)
      if (!internal && family === 'IPv4')
        found.push({ address, isVirtual: /^(docker|br-|veth|cni|virbr|tun|kcp)/.test(name) })
  const best = found.find(({ isVirtual }) => !isVirtual) ?? found[0]
  if (best === undefined) throw new ExitError('this machine has no address but the loopback: give --advertise-address')
  return best.address
}
