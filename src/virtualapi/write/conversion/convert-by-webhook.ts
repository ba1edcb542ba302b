// One call of a conversion webhook.
import type { ClusterId, JsonObject, JsonValue } from '#apimachinery/meta/index.ts'
import { EgressError } from '#network/egress/index.ts'
import { outboundTarget } from '#virtualapi/outbound/calls/client-config.ts'
import {
  urlText,
  type Outbound,
  type OutboundResponse,
  type OutboundTarget,
} from '#virtualapi/outbound/calls/outbound.ts'
import { statusFailure } from '#virtualapi/outbound/calls/status-failure.ts'
import type { WebhookConversion } from '#virtualapi/kinds/resources/resource-definition.ts'
import { conversionReview, objectsOfResponse } from './conversion-review.ts'
import { conversionFailure, takeConverted, typeText } from './take-converted.ts'

/** The logical cluster and the abort signal of the request that needs a conversion. */
export interface ConversionCall {
  readonly cluster: ClusterId
  readonly signal: AbortSignal
}

interface ConversionDependencies {
  readonly outbound: Outbound
  /** Awaited between objects and other pieces of work. */
  readonly turn: () => Promise<void> | undefined
}

/** As upstream. The query of the request tells the webhook. */
const timeoutMs = 30_000
const query = `timeout=${timeoutMs / 1000}s`

/**
 * The objects in version `apiVersion`, with fields that the schema of this version may not know. Rejects with a
 * StatusError (500) if the webhook fails, and with the signal's reason if the signal is aborted.
 */
export async function convertByWebhook(
  conversion: WebhookConversion,
  objects: readonly JsonObject[],
  apiVersion: string,
  { cluster, signal, outbound, turn }: ConversionCall & ConversionDependencies,
): Promise<JsonObject[]> {
  const [first] = objects
  if (first === undefined) return []
  for (const object of objects) requireKnownVersion(conversion, object)
  const review = reviewOf(conversion, objects, apiVersion)
  const target = outboundTarget(conversion.clientConfig)
  const request = { cluster, target, query, body: review.body, timeoutMs }
  let converted: readonly JsonValue[] = []
  const reading = async ({ status, body }: OutboundResponse): Promise<void> => {
    const failure = statusFailure(status)
    if (failure !== undefined) throw answerFailure(first, new Error(failure))
    converted = await objectsOfResponse(body, review, turn).catch((error: unknown) => {
      signal.throwIfAborted()
      throw answerFailure(first, error as Error)
    })
  }
  try {
    await outbound.post(request, signal, reading)
  } catch (error) {
    throw error instanceof EgressError ? callFailure(first, target, error) : error
  }
  if (converted.length !== objects.length)
    throw conversionFailure(
      `conversion webhook for ${typeText(first)} returned ${converted.length} objects, expected ${objects.length}`,
    )
  const taken: JsonObject[] = []
  for (const [index, object] of objects.entries()) {
    taken.push(takeConverted(object, converted[index] ?? null, apiVersion))
    await turn()
  }
  return taken
}

/** Throws if the object is in a version that the CustomResourceDefinition no longer has, as a stored object may be. */
function requireKnownVersion({ schemas }: WebhookConversion, { apiVersion }: JsonObject): void {
  const version = typeof apiVersion === 'string' ? apiVersion : ''
  if (!schemas.has(version)) throw conversionFailure(`request to convert CR from an invalid group/version: ${version}`)
}

function reviewOf(
  { reviewVersions }: WebhookConversion,
  objects: readonly JsonObject[],
  apiVersion: string,
): ReturnType<typeof conversionReview> {
  try {
    return conversionReview(objects, apiVersion, reviewVersions)
  } catch (error) {
    throw conversionFailure((error as Error).message, error)
  }
}

function callFailure(object: JsonObject, target: OutboundTarget, error: EgressError): Error {
  return conversionFailure(
    `conversion webhook for ${typeText(object)} failed: Post "${urlText(target, query)}": ${error.message}`,
    error,
  )
}

function answerFailure(object: JsonObject, error: Error): Error {
  return conversionFailure(`conversion webhook for ${typeText(object)} failed: ${error.message}`, error)
}
