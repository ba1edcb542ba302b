// The APIs of members for others, as the ServiceAccount that the MemberCluster names (spec.access).
import { actingAs } from '#client/member/index.ts'
import { serviceUnavailable } from '#apimachinery/status/index.ts'
import type { TransportResponse, UpgradedConnection } from '#client/index.ts'
import type { AccessAccount } from '#crds/index.ts'
import type { MemberUse } from '#virtualapi/request/exchange.ts'
import { forwardedHeaders, forwardedQuery } from './forwarded.ts'
import { memberUnavailable, type MemberConnection, type MemberConnections } from './member-connections.ts'

export interface AccessibleMember {
  readonly uid: string
  /** Undefined: it gives nobody access. */
  readonly account: AccessAccount | undefined
}

interface MemberRequest {
  readonly method: string
  /** Path and query. */
  readonly url: string
  readonly rawHeaders: readonly string[]
  readonly signal: AbortSignal
}

export interface MemberAccess {
  /** The member of this name; undefined if there is none. */
  find(name: string, signal: AbortSignal): Promise<AccessibleMember | undefined>
  /** Rejects with ServiceUnavailable if the member does not answer, redirects, or refuses our own credentials. */
  request(use: MemberUse, request: MemberRequest & { readonly body: Uint8Array }): Promise<TransportResponse>
  upgrade(
    use: MemberUse,
    request: MemberRequest,
  ): Promise<{ upgraded: UpgradedConnection } | { refused: TransportResponse }>
}

export function createMemberAccess({ members }: { readonly members: MemberConnections }): MemberAccess {
  return {
    async find(name, signal) {
      const member = await members.registered(name, signal)
      // A member that is being deleted is left by everybody.
      if (member === undefined || member.metadata.deletionTimestamp !== undefined) return undefined
      return { uid: member.metadata.uid ?? '', account: member.spec?.access?.serviceAccountRef }
    },
    async request({ name, account }, { method, url, rawHeaders, body, signal }) {
      const member = await members.byName(name, signal)
      const acting = actingAs(member.way, account)
      const kept = Object.fromEntries(pairs(forwardedHeaders(rawHeaders, { upgrade: false })))
      const request = { method, path: acting.pathPrefix + pathOf(url), headers: { ...kept, ...acting.headers }, signal }
      try {
        return requireAccepted(member, await member.passing.request({ ...request, ...(body.length > 0 && { body }) }))
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw memberUnavailable(name, error)
      }
    },
    async upgrade({ name, account }, { method, url, rawHeaders, signal }) {
      const member = await members.byName(name, signal)
      const acting = actingAs(member.way, account)
      const kept = forwardedHeaders(rawHeaders, { upgrade: true })
      const headers = [...kept, ...Object.entries(acting.headers).flat()]
      try {
        const path = acting.pathPrefix + pathOf(url)
        const result = await member.passing.upgrade({ method, path, rawHeaders: headers, signal })
        return 'refused' in result ? { refused: requireAccepted(member, result.refused) } : result
      } catch (error) {
        if (signal.aborted) throw signal.reason
        throw memberUnavailable(name, error)
      }
    },
  }
}

function pathOf(url: string): string {
  const at = url.indexOf('?')
  return at < 0 ? url : url.slice(0, at) + forwardedQuery(url.slice(at))
}

/** Returns the response. Throws 503 for 401, which is about our own credentials. */
function requireAccepted({ name }: MemberConnection, response: TransportResponse): TransportResponse {
  if (response.status !== 401) return response
  void response.body[Symbol.asyncIterator]().return?.()
  throw serviceUnavailable(`member cluster "${name}" does not accept our credentials`)
}

function* pairs(rawHeaders: readonly string[]): Generator<[string, string]> {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    yield [(rawHeaders[i] ?? '').toLowerCase(), rawHeaders[i + 1] ?? '']
}
