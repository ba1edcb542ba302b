// GET of one object: answers the bytes in memory without decoding them where no other form is asked for.
import { badRequest } from '../../apimachinery/status/index.ts'
import { isTrue } from '../request/parse-request.ts'
import { jsonBytes } from '../codec/answers.ts'
import { viewOf } from '../codec/representations.ts'
import type { Answer } from '../exchange/exchange.ts'
import type { EndpointCall } from './endpoint-call.ts'
import type { EndpointParts } from './parts.ts'
import { requireRevision, waitForRevision } from './read-position.ts'

export async function getObject(call: EndpointCall<EndpointParts>): Promise<Answer> {
  requireNoExport(call.query)
  await waitForAskedRevision(call)
  return readObject(call)
}

/** Waits until the server knows the resourceVersion of the query, if there is one. Rejects as `waitForRevision`. */
export async function waitForAskedRevision({ query, parts, exchange }: EndpointCall<EndpointParts>): Promise<void> {
  const version = query.get('resourceVersion') ?? ''
  if (version !== '' && version !== '0') await waitForRevision(parts, requireRevision(version), exchange.signal)
}

/** The object as it is now. */
export async function readObject(call: EndpointCall): Promise<Answer> {
  const { definition, representation, query, parts, target, request } = call
  requireNoExport(query)
  const entry = parts.registry.get(target, request.name)
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  return jsonBytes(view.object(entry.bytes))
}

/** Throws 400 for `export=true`: an old client would take the answer for one without server-set fields. */
function requireNoExport(query: URLSearchParams): void {
  const given = query.get('export')
  if (given !== null && isTrue(given))
    throw badRequest('the export parameter, deprecated since v1.14, is no longer supported')
}
