// Reduces a large response of an admission webhook to the part that is kept. Many webhooks send the whole review back,
// with the objects that they got. Only the used fields of its `response` are kept, within bounds.
import { Buffer } from 'node:buffer'
import { parseJsonInTurns } from '#apimachinery/json/index.ts'
import { encodeJson, isJsonObject, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'
import { EgressError } from '#network/egress/index.ts'

/** Responses up to this size are kept as they are. */
const smallBytes = 64 * 1024
const maxReviewBytes = 8 * 1024 * 1024
/** A response may repeat two objects with the most values that an object may have, and contain a patch. */
const maxReviewValues = 300_000
/** The bounds of texts that are shown to clients and in audit lines. Requests hold these texts until they end. */
const [maxWarnings, maxAnnotations, maxCharacters] = [100, 200, 64 * 1024]

const topMembers: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'response'])
const plainMembers = ['uid', 'allowed', 'patch', 'patchType'] as const

/**
 * The response without unused fields; it is parsed in turns. Rejects with EgressError if it cannot be read or is too
 * large, with signal.reason if aborted.
 */
export async function reduceReview(
  body: Uint8Array,
  { turn, signal }: { readonly turn: () => Promise<void> | undefined; readonly signal: AbortSignal },
): Promise<Uint8Array> {
  if (body.length <= smallBytes) return body
  let review: JsonValue
  try {
    const bounds = { maxBytes: maxReviewBytes, maxValues: maxReviewValues }
    review = await parseJsonInTurns(body, { ...bounds, turn, only: topMembers })
  } catch (error) {
    signal.throwIfAborted()
    throw new EgressError(`the answer cannot be read: ${(error as Error).message}`, { cause: error })
  }
  if (!isJsonObject(review)) return Buffer.from('null')
  const { response } = review
  return Buffer.from(encodeJson({ ...review, ...(isJsonObject(response) ? { response: bounded(response) } : {}) }))
}

/**
 * The used fields of a response, within bounds. Members of wrong types stay, because the reader of the review refuses
 * them.
 */
function bounded(response: JsonObject): JsonObject {
  const { status, warnings, auditAnnotations: annotations } = response
  const plain = plainMembers.flatMap((name) => (response[name] === undefined ? [] : [[name, response[name]] as const]))
  return {
    ...Object.fromEntries(plain),
    ...(status === undefined ? {} : { status: isJsonObject(status) ? shortStatus(status) : status }),
    ...(warnings === undefined
      ? {}
      : { warnings: Array.isArray(warnings) ? first(warnings, maxWarnings, (text) => text) : warnings }),
    ...(annotations === undefined
      ? {}
      : {
          auditAnnotations: isJsonObject(annotations)
            ? Object.fromEntries(first(Object.entries(annotations), maxAnnotations, ([name, text]) => [name, text]))
            : annotations,
        }),
  }
}

/** The first items: at most `most`, and as many as fit into maxCharacters. */
function first<T>(items: readonly T[], most: number, partOf: (item: T) => JsonValue): T[] {
  let left = maxCharacters
  return items.slice(0, most).filter((item) => {
    left -= encodeJson(partOf(item)).length
    return left >= 0
  })
}

function shortStatus({ code, reason, message, details, ...others }: JsonObject): JsonObject {
  const text = typeof message === 'string' ? message.slice(0, maxCharacters) : message
  const short = typeof reason === 'string' ? reason.slice(0, 1024) : reason
  const given = { code, reason: short, message: text, status: others['status'], details }
  const kept = Object.entries(given).filter(
    ([, value]) => value !== undefined && encodeJson(value).length <= maxCharacters * 2,
  )
  return Object.fromEntries(kept) as JsonObject
}
