// The body of a sign-in.
import { badRequest } from '#apimachinery/status/index.ts'
import type { IncomingRequest } from '#virtualapi/request/exchange.ts'
import { readSmallJson } from '#virtualapi/request/small-body.ts'

export type Credentials = { readonly ticket: string } | { readonly token: string; readonly cluster: string | undefined }

const bounds = { what: 'a sign-in', maxBytes: 32 * 1024, maxMs: 10_000 }

/** Rejects with 400, 408, 411, 413 or 415 for a body that is no sign-in. */
export async function readCredentials(request: IncomingRequest): Promise<Credentials> {
  const { ticket, token, cluster } = await readSmallJson(request, bounds)
  if (typeof ticket === 'string' && token === undefined) return { ticket }
  if (typeof token === 'string' && ticket === undefined && (cluster === undefined || typeof cluster === 'string'))
    return { token: token.trim(), cluster: cluster === '' ? undefined : cluster }
  throw badRequest('a sign-in has the field "ticket", or "token" and perhaps "cluster"')
}
