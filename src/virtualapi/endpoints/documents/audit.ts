// `/audit` of a logical cluster: its last audit events, one in a line, as in an audit file of kube-apiserver. Readers go on
// at the position in the annotation kcp.dev/audit-position of the last event that they have.
import { Buffer } from 'node:buffer'
import { badRequest, expired, methodNotServed, statusError, type StatusError } from '#apimachinery/status/index.ts'
import { childSignal } from '#async/index.ts'
import { positionText, tryPosition, type AuditRing, type Position } from '#virtualapi/audit/index.ts'
import type { EndpointDependencies } from '#virtualapi/endpoints/call/dependencies.ts'
import type { LogicalCluster } from '#virtualapi/request/logical-cluster.ts'
import { isTrue } from '#virtualapi/request/parse-request.ts'
import type { Exchange, StreamResponse } from '#virtualapi/request/exchange.ts'

const maxStallMs = 60_000
const maxChunkBytes = 64 * 1024
/** How long one request follows the log, milliseconds: rights are asked for again then. */
const maxFollowMs = 30 * 60_000

/** Throws 404 if the logical cluster keeps no events, 410 if events after `after` are gone. */
export function auditEvents(
  exchange: Exchange,
  cluster: LogicalCluster,
  { auditRingOf }: EndpointDependencies,
): StreamResponse {
  const { method, query } = exchange.info
  if (method !== 'GET') throw methodNotServed()
  const ring = auditRingOf?.(cluster)
  if (ring === undefined)
    throw statusError(
      404,
      'NotFound',
      'this logical cluster keeps no audit events for its users: an admin sets spec.audit.readable of its LogicalCluster',
    )
  const asked = query.get('after') ?? ''
  const after = asked === '' ? undefined : tryPosition(asked)
  if (asked !== '' && after === undefined)
    throw badRequest(`after must be the annotation kcp.dev/audit-position of an event, not ${JSON.stringify(asked)}`)
  if (ring.read(after, 1).isGone) throw gone(asked)
  const follow = isTrue(query.get('follow'))
  return {
    kind: 'stream',
    status: 200,
    headers: { 'content-type': 'application/x-ndjson' },
    chunks: follow ? followed(ring, after, exchange.signal) : kept(ring, after),
    maxStallMs,
  }
}

/** The events that are there now. */
async function* kept(ring: AuditRing, after: Position | undefined): AsyncGenerator<Uint8Array> {
  const end = ring.end
  for (let from = after; ;) {
    const { lines, next, isGone } = ring.read(from, maxChunkBytes)
    if (isGone) yield statusLine(gone(from === undefined ? '' : positionText(from)))
    const shown = lines.slice(0, lines.length - Math.max(0, next.number - end))
    if (isGone || shown.length === 0) return
    yield Buffer.concat(shown)
    from = next
  }
}

async function* followed(
  ring: AuditRing,
  after: Position | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  using limited = childSignal(signal)
  const over = new Error('the time of this request is over')
  const timer = setTimeout(() => limited.abort(over), maxFollowMs)
  try {
    for (let from = after; !ring.isClosed;) {
      const { lines, next, isGone } = ring.read(from, maxChunkBytes)
      if (isGone) {
        yield statusLine(gone(from === undefined ? '' : positionText(from)))
        return
      }
      from = next
      if (lines.length > 0) yield Buffer.concat(lines)
      else await ring.grown(limited.signal)
    }
  } catch (error) {
    if (error !== over) throw error
  } finally {
    clearTimeout(timer)
  }
}

function gone(after: string): StatusError {
  return expired(`Events after ${after === '' ? 'this' : `"${after}"`} are gone: read again without after.`)
}

function statusLine({ status }: StatusError): Buffer {
  return Buffer.from(`${JSON.stringify(status)}\n`)
}
