// Reservations on the worker thread: amounts of quotas, and addresses and ports of Services. The main thread makes
// them, because all threads share them.
import type { Allocation, AllocationFor } from '#virtualapi/kinds/resources/allocation.ts'
import type { LedgerFor } from '#virtualapi/write/quota/index.ts'
import type { ReadAnswers } from './protocol.ts'
import type { Link } from './remote-objects.ts'

/** The ledgers of the main thread. */
export function remoteLedgers(read: Link['read']): LedgerFor {
  return ({ cluster }) => ({
    charge: (charge) => read(cluster, { do: 'charge', charge }) as ReadAnswers['charge'],
    release: (namespace, held) => void read(cluster, { do: 'release', namespace, held }),
  })
}

/** The allocators of the main thread. */
export function remoteAllocations(read: Link['read']): AllocationFor {
  return ({ cluster }, request) => {
    const ask = (method: keyof Allocation, value?: string | number): ReadAnswers['allocate'] =>
      read(cluster, {
        do: 'allocate',
        request,
        method,
        ...(value === undefined ? {} : { value }),
      }) as ReadAnswers['allocate']
    return {
      nextIp: () => text(ask('nextIp')),
      nextPort: () => {
        const port = ask('nextPort')
        return port === undefined ? undefined : Number(port)
      },
      takeIp: (ip) => text(ask('takeIp', ip)),
      takePort: (port) => text(ask('takePort', port)),
    }
  }
}

function text(value: string | number | undefined): string | undefined {
  return value === undefined ? undefined : String(value)
}
