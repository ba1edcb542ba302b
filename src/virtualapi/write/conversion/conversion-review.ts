// ConversionReview: the request to a conversion webhook and its response (apiextensions.k8s.io/v1 and v1beta1).
import { randomUUID } from 'node:crypto'
import { goQuote } from '#apimachinery/text/index.ts'
import { parseJsonInTurns } from '#apimachinery/json/index.ts'
import { encodeJson, isJsonObject, parseApiVersion, type JsonObject, type JsonValue } from '#apimachinery/meta/index.ts'

type ReviewVersion = 'v1' | 'v1beta1'

export interface ConversionReview {
  readonly uid: string
  readonly version: ReviewVersion
  readonly body: Uint8Array
}

const maxDepth = 1000
const maxReviewBytes = 8 * 1024 * 1024
/** The most JSON values in one response. Each object in it may have as many as a request body (take-converted.ts). */
const maxReviewValues = 300_000
/** The most characters of a webhook's error message, which is shown to the client. */
const maxMessageLength = 16 * 1024

/**
 * The request for `objects` in version `desiredApiVersion`, in the first version of the review that both sides know.
 * Throws an Error if there is none.
 */
export function conversionReview(
  objects: readonly unknown[],
  desiredApiVersion: string,
  reviewVersions: readonly string[],
): ConversionReview {
  const version = reviewVersions.find((one): one is ReviewVersion => one === 'v1' || one === 'v1beta1')
  if (version === undefined) throw new Error('no supported conversion review versions')
  const uid = randomUUID()
  const review = {
    kind: 'ConversionReview',
    apiVersion: `apiextensions.k8s.io/${version}`,
    request: { uid, desiredAPIVersion: desiredApiVersion, objects },
    // As upstream, the request has the empty response of its Go type.
    response: { uid: '', convertedObjects: null, result: { metadata: {} } },
  }
  return { uid, version, body: Buffer.from(encodeJson(review)) }
}

/**
 * The converted objects of a response, which are not checked yet. Rejects with an Error in kube-apiserver's words if
 * the response is malformed or reports a failure.
 */
export async function objectsOfResponse(
  body: Uint8Array,
  { uid, version }: Pick<ConversionReview, 'uid' | 'version'>,
  turn: () => Promise<void> | undefined,
): Promise<readonly JsonValue[]> {
  const review = await decode(body, turn)
  if (version === 'v1') requireType(review)
  const response = review['response'] ?? undefined
  if (response === undefined) throw new Error('no response provided')
  if (!isJsonObject(response)) throw wrongType('response')
  // v1beta1 was never checked for its uid.
  const given = textOf(response, 'uid')
  if (version === 'v1' && given !== uid) throw new Error(`expected response.uid=${goQuote(uid)}, got ${goQuote(given)}`)
  const result = response['result'] ?? {}
  if (!isJsonObject(result)) throw wrongType('response.result')
  const [status, message] = [textOf(result, 'status'), textOf(result, 'message')]
  if (status !== 'Success')
    throw new Error(message.slice(0, maxMessageLength) || `response.result.status was '${status}', not 'Success'`)
  const objects = response['convertedObjects'] ?? []
  if (!Array.isArray(objects)) throw wrongType('response.convertedObjects')
  return objects
}

const topMembers: ReadonlySet<string> = new Set(['kind', 'apiVersion', 'response'])

async function decode(body: Uint8Array, turn: () => Promise<void> | undefined): Promise<JsonObject> {
  let value: JsonValue
  try {
    const bounds = { maxDepth, maxBytes: maxReviewBytes, maxValues: maxReviewValues }
    value = await parseJsonInTurns(body, { ...bounds, turn, only: topMembers })
  } catch (error) {
    throw new Error(`couldn't get version/kind; json parse error: ${(error as Error).message}`, { cause: error })
  }
  if (!isJsonObject(value)) throw new Error("couldn't get version/kind; json parse error")
  // As upstream, whose decoder needs a kind before it looks at the response.
  if (textOf(value, 'kind') === '') throw new Error("Object 'Kind' is missing in the answer")
  return value
}

function requireType(review: JsonObject): void {
  const kind = textOf(review, 'kind')
  const { group, version } = parseApiVersion(textOf(review, 'apiVersion'))
  if (kind === 'ConversionReview' && group === 'apiextensions.k8s.io' && version === 'v1') return
  throw new Error(
    `expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got ${group}/${version}, Kind=${kind}`,
  )
}

function wrongType(field: string): Error {
  return new Error(`json: cannot unmarshal ${field} of the answer: it has a wrong type`)
}

/** A text member, empty if it is absent, as Go decodes it. Throws an Error for another type. */
function textOf(object: JsonObject, field: string): string {
  const value = object[field] ?? ''
  if (typeof value !== 'string') throw wrongType(field)
  return value
}
