// Server-side apply is not served yet: who asks for it is told so, and what to do instead.
import { unsupportedMediaType } from '../../apimachinery/status/index.ts'
import type { Exchange } from '../exchange/exchange.ts'

/** Throws 415 for a patch that is to be applied by the server, whatever its parameters: they are of that way alone. */
export function refuseServerSideApply(exchange: Exchange): void {
  if (exchange.info.verb !== 'patch') return
  if (!/^\s*application\/apply-patch\+/i.test(exchange.header('content-type') ?? '')) return
  throw unsupportedMediaType(
    'server-side apply is not served yet: apply on the client (kubectl without --server-side, helm with --server-side=false)',
  )
}
