// How failures and refusals of webhooks are told to the client, in kube-apiserver's words. What a webhook answered besides a
// valid review is never repeated: its address may be one that the tenant should not read from.
import { goQuote } from '../../apimachinery/text/index.ts'
import type { JsonObject } from '../../apimachinery/meta/index.ts'
import { badRequest, internalError, StatusError, type Status } from '../../apimachinery/status/index.ts'

/** The webhook gave no usable answer: failurePolicy decides. */
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

const texts: Readonly<Record<number, string>> = {
  400: 'the server rejected our request for an unknown reason',
  401: 'the server has asked for the client to provide credentials',
  403: 'unknown',
  404: 'the server could not find the requested resource',
  405: 'the server does not allow this method on the requested resource',
  406: 'the server was unable to respond with a content type that the client supports',
  409: 'the server reported a conflict',
  415: 'unknown',
  422: 'the server rejected our request due to an error in our request',
  429: 'the server has received too many requests and has asked us to try again later',
  503: 'the server is currently unable to handle the request',
  504: 'the server was unable to return a response in the time allotted, but may still be processing the request',
}

/** What an answer of this HTTP status means; undefined for success. */
export function statusFailure(code: number): string | undefined {
  if (code >= 200 && code <= 206) return undefined
  if (texts[code] !== undefined) return texts[code]
  return code >= 500
    ? 'an error on the server ("unknown") has prevented the request from succeeding'
    : `the server responded with the status code ${code} but did not return more information`
}
