// Names to addresses, through c-ares: the resolver of the C library would block one of the few threads that also read files,
// for as long as a tenant's name server likes.
import { Resolver } from 'node:dns/promises'
import { isIP } from 'node:net'
import { EgressError } from './egress-error.ts'

/** Addresses tried for one name. */
const maxAddresses = 4

export type ResolveHost = (host: string, signal: AbortSignal) => Promise<readonly string[]>

/**
 * Resolves names with these name servers (default: those of this machine). The result has IPv4 addresses first. Rejects with
 * EgressError for a name that has no address, with signal.reason when aborted.
 */
export function createResolveHost({ servers }: { servers?: readonly string[] } = {}): ResolveHost {
  return async (host, signal) => {
    const bare = host.replace(/^\[|\]$/g, '')
    if (isIP(bare) !== 0) return [bare]
    // RFC 6761: these names never leave the machine.
    if (/(^|\.)localhost\.?$/i.test(bare)) return ['127.0.0.1', '::1']
    const resolver = new Resolver({ timeout: 2000, tries: 2 })
    if (servers !== undefined) resolver.setServers([...servers])
    const cancel = (): void => resolver.cancel()
    signal.addEventListener('abort', cancel, { once: true })
    try {
      const found = await Promise.allSettled([resolver.resolve4(bare), resolver.resolve6(bare)])
      signal.throwIfAborted()
      const addresses = found.flatMap((result) => (result.status === 'fulfilled' ? result.value : []))
      if (addresses.length > 0) return addresses.slice(0, maxAddresses)
      const why = found.find((result) => result.status === 'rejected')?.reason as NodeJS.ErrnoException | undefined
      const text = why?.code === 'ETIMEOUT' ? 'i/o timeout' : 'no such host'
      throw new EgressError(`dial tcp: lookup ${bare}: ${text}`, { cause: why })
    } finally {
      signal.removeEventListener('abort', cancel)
    }
  }
}
