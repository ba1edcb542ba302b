// Reaches pods through the API server of their member.
import { isStatusError, serviceUnavailable } from '#apimachinery/status/index.ts'
import type { TransportResponse } from '#client/index.ts'
import { forwardedHeaders, forwardedQuery } from './forwarded.ts'
import { locatePod } from './locate-pod.ts'
import { memberUnavailable, type MemberConnection, type MemberConnections } from './member-connections.ts'
import type { PodConnection, PodConnector } from './pod-connector.ts'

/** Creates a PodConnector to the pods in these members. */
export function createPodConnector({ members }: { members: MemberConnections }): PodConnector {
  return {
    async request(connection) {
      const { member, path } = await locate(members, connection)
      const { method, rawHeaders, body, signal } = connection
      const headers = Object.fromEntries(pairs(forwardedHeaders(rawHeaders, { upgrade: false })))
      try {
        const request = { method, path, headers, signal, ...(body && body.length > 0 && { body }) }
        return requireAccepted(member, await member.transport.request(request))
      } catch (error) {
        if (signal.aborted) throw error
        throw memberUnavailable(member.name, error)
      }
    },
    async upgrade(connection) {
      const { member, path } = await locate(members, connection)
      const { method, rawHeaders, signal } = connection
      try {
        const answer = await member.transport.upgrade({
          method,
          path,
          rawHeaders: forwardedHeaders(rawHeaders, { upgrade: true }),
          signal,
        })
        return 'refused' in answer ? { refused: requireAccepted(member, answer.refused) } : answer
      } catch (error) {
        if (signal.aborted) throw error
        throw memberUnavailable(member.name, error)
      }
    },
  }
}

interface Located {
  readonly member: MemberConnection
  readonly path: string
}

async function locate(members: MemberConnections, connection: PodConnection): Promise<Located> {
  const { member, namespace } = await locatePod(members, connection, connection.signal)
  const { pod, subresource, query } = connection
  const name = encodeURIComponent(pod.metadata.name ?? '')
  const path = `/api/v1/namespaces/${encodeURIComponent(namespace)}/pods/${name}/${subresource}${forwardedQuery(query)}`
  return { member, path }
}

/**
 * Returns the response. Throws 503 for 401 and 403: they are about our own credentials, since the tenant was authorized
 * before.
 */
function requireAccepted({ name }: MemberConnection, response: TransportResponse): TransportResponse {
  if (response.status !== 401 && response.status !== 403) return response
  void drain(response)
  throw serviceUnavailable(`member cluster "${name}" does not accept our credentials`)
}

async function drain({ body }: TransportResponse): Promise<void> {
  try {
    for await (const _ of body);
  } catch (error) {
    if (!isStatusError(error) && !(error instanceof Error)) throw error
  }
}

function* pairs(rawHeaders: readonly string[]): Generator<[string, string]> {
  for (let i = 0; i + 1 < rawHeaders.length; i += 2)
    yield [(rawHeaders[i] ?? '').toLowerCase(), rawHeaders[i + 1] ?? '']
}
