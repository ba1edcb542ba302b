// GET of one object: answers the bytes in memory without decoding them where no other form is asked for.
import { badRequest } from '../../apimachinery/status/index.ts'
import { isTrue } from '../request/parse-request.ts'
import { jsonBytes } from '../codec/answers.ts'
import { viewOf } from '../codec/representations.ts'
import type { Answer } from '../server/exchange.ts'
import type { Call } from './call.ts'
import { requireRevision, waitForRevision } from './read-position.ts'

export async function getObject(call: Call): Promise<Answer> {
  const { definition, representation, query, parts, target, request } = call
  requireNoExport(query)
  const version = query.get('resourceVersion') ?? ''
  if (version !== '' && version !== '0') await waitForRevision(parts, requireRevision(version), call.exchange.signal)
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
