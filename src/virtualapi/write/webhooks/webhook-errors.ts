// The errors that clients get for failures and refusals of webhooks, in kube-apiserver's words. They never repeat a
// webhook's response unless it is a valid review, because the tenant may not be allowed to read from the webhook's
// address.
import { goQuote } from '#apimachinery/text/index.ts'
import type { JsonObject } from '#apimachinery/meta/index.ts'
import { badRequest, internalError, StatusError, type Status } from '#apimachinery/status/index.ts'

/** The webhook gave no usable response, so failurePolicy decides. */
export class WebhookCallError extends Error {
  constructor(webhook: string, why: string, cause?: unknown) {
    super(`failed calling webhook ${goQuote(webhook)}: ${why}`, { cause })
    this.name = 'WebhookCallError'
  }

  /** 500, for failurePolicy Fail. */
  get status(): StatusError {
    return internalError(this.message, this)
  }
}

/** The refusal of a webhook, with the status that it gave. */
export function deniedBy(webhook: string, result: JsonObject | undefined): StatusError {
  const { code, reason, message, details } = (result ?? {}) as Partial<Status>
  const denied = `admission webhook ${goQuote(webhook)} denied the request`
  const text = message ? `${denied}: ${message}` : reason ? `${denied}: ${reason}` : `${denied} without explanation`
  return new StatusError({
    kind: 'Status',
    apiVersion: 'v1',
    metadata: {},
    status: 'Failure',
    message: text,
    ...(typeof reason === 'string' && reason !== '' ? { reason } : {}),
    ...(typeof details === 'object' ? { details } : {}),
    code: typeof code === 'number' && code >= 400 && code < 600 ? code : 400,
  })
}

export function dryRunUnsupported(webhook: string): StatusError {
  return badRequest(`admission webhook ${goQuote(webhook)} does not support dry run`)
}
