// The JSON patch of a mutating webhook, applied to the object of the request.
import { parseJson, parseJsonText, surveyJson } from '#apimachinery/json/index.ts'
import { goQuote } from '#apimachinery/text/index.ts'
import { isJsonObject, type JsonValue, type KubeObject } from '#apimachinery/meta/index.ts'
import { applyJsonPatch } from '#apimachinery/patch/index.ts'
import { internalError, isStatusError } from '#apimachinery/status/index.ts'
import type { Shown } from '#virtualapi/write/admission/shown.ts'
import { takeMutated } from '#virtualapi/write/admission/take-mutated.ts'
import type { Verdict } from './admission-review.ts'
import type { Webhook } from './webhook-configurations.ts'
import { WebhookCallError } from './webhook-errors.ts'

/** Patches up to this size are parsed without a survey of their values before. */
const lightPatchBytes = 3 * 1024

export interface Patched {
  /** The operations, for the audit line. */
  readonly operations: readonly JsonValue[]
  /** True if the object has changed. */
  readonly changed: boolean
}

/**
 * Applies the verdict's patch to `object` (the stored form), in place. Resolves with undefined if there is no patch.
 * Rejects with WebhookCallError for a patch that cannot be decoded or is too large, with InternalError for a patch that
 * does not apply, and with the error of `context.grown`.
 */
export async function applyVerdict(
  webhook: Webhook,
  { patch, patchType }: Verdict,
  shown: Shown,
  object: KubeObject | undefined,
): Promise<Patched | undefined> {
  if (patch === undefined) return undefined
  const operations = decodePatch(webhook, patch, shown)
  if (operations.length === 0) return undefined
  if (object === undefined || shown.object === undefined)
    throw internalError(
      `admission webhook ${goQuote(webhook.name)} attempted to modify the object, which is not supported for this operation`,
    )
  if (patchType !== 'JSONPatch')
    throw new WebhookCallError(webhook.name, `unsupported patch type ${goQuote(patchType)}`)
  const patched = applied(shown.object, operations)
  return { operations, changed: await takeMutated(shown, patched, object) }
}

/** Decodes a patch, with the limits of a request body. */
function decodePatch({ name }: Webhook, patch: string, { request }: Shown): JsonValue[] {
  const bytes = Buffer.from(patch)
  if (bytes.length > lightPatchBytes) request.context.grown?.({ values: surveyJson(bytes).values, bytes: bytes.length })
  try {
    const { value } = parseJson(bytes)
    if (Array.isArray(value) && value.every(isJsonObject)) return value
    throw new Error('json: cannot unmarshal the patch: it must be a list of operations')
  } catch (error) {
    const why = (error as Error).message
    throw new WebhookCallError(name, `received undecodable patch in webhook response: ${why}`, error)
  }
}

function applied(document: KubeObject, operations: JsonValue[]): KubeObject {
  try {
    const patched = applyJsonPatch(parseJsonText(JSON.stringify(document)), operations)
    if (isJsonObject(patched)) return patched as unknown as KubeObject
    throw new Error('the patched document is no object')
  } catch (error) {
    // The status of a patch that does not apply has the reason as its cause.
    const cause = isStatusError(error) ? error.cause : undefined
    throw internalError(cause instanceof Error ? cause.message : (error as Error).message, error)
  }
}
