// Server-side apply is not served yet; the error names the alternative.
import { unsupportedMediaType } from '../../apimachinery/status/index.ts'
import type { Exchange } from '../exchange/exchange.ts'

/** Throws 415 for a server-side apply patch, before its parameters are validated. */
export function refuseServerSideApply(exchange: Exchange): void {
  if (exchange.info.verb !== 'patch') return
  if (!/^\s*application\/apply-patch\+/i.test(exchange.header('content-type') ?? '')) return
  throw unsupportedMediaType(
    'server-side apply is not served yet: apply on the client (kubectl without --server-side, helm with --server-side=false)',
  )
}
