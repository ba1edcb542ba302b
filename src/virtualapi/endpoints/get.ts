// GET of one object: bytes from memory to the wire.
import { jsonBytes } from '../codec/answers.ts'
import { viewOf } from '../codec/representations.ts'
import type { Answer } from '../server/exchange.ts'
import type { Call } from './call.ts'
import { requireRevision, waitForRevision } from './read-position.ts'

export async function getObject(call: Call): Promise<Answer> {
  const { definition, representation, query, parts, target, request } = call
  const version = query.get('resourceVersion') ?? ''
  if (version !== '' && version !== '0') await waitForRevision(parts, requireRevision(version), call.exchange.signal)
  const entry = parts.registry.get(target, request.name)
  const view = viewOf(definition, representation, {
    includeObject: query.get('includeObject') ?? 'Metadata',
    now: target.context.now,
  })
  return jsonBytes(view.object(entry.bytes))
}
