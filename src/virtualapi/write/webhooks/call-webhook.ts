// One call of one admission webhook.
import { EgressError } from '#network/egress/index.ts'
import { urlText, type Outbound } from '#virtualapi/outbound/calls/outbound.ts'
import { statusFailure } from '#virtualapi/outbound/calls/status-failure.ts'
import {
  admissionReview,
  InvalidReview,
  readVerdict,
  reviewVersionOf,
  UndecodableReview,
  type Verdict,
} from './admission-review.ts'
import type { Shown } from '#virtualapi/write/admission/shown.ts'
import type { Webhook, WebhookType } from './webhook-configurations.ts'
import { deniedBy, dryRunUnsupported, WebhookCallError } from './webhook-errors.ts'

/**
 * Calls the webhook and adds its warnings and audit annotations to those of the request. Rejects with WebhookCallError
 * if the call failed, so that failurePolicy decides; with StatusError if the webhook refused; with the signal's reason
 * if aborted.
 */
export async function callWebhook(
  webhook: Webhook,
  shown: Shown,
  { outbound, type }: { outbound: Outbound; type: WebhookType },
): Promise<Verdict> {
  const { name, target, timeoutSeconds, provider } = webhook
  const { context, signal } = shown.request
  if (context.dryRun && !webhook.takesDryRun) throw dryRunUnsupported(name)
  const version = reviewVersionOf(webhook.reviewVersions)
  if (version === undefined)
    throw new WebhookCallError(
      name,
      'could not create admission objects: webhook does not accept known AdmissionReview versions (v1, v1beta1)',
    )
  // Other requests get a turn: a hundred webhooks may match, and opening a connection costs half a millisecond.
  await context.turn?.()
  const { uid, body } = admissionReview(shown, version)
  const query = `timeout=${timeoutSeconds}s`
  const timeoutMs = timeoutSeconds * 1000
  // The consumer pays for the call that its write causes; a Service is one of the provider.
  const services = provider === undefined ? {} : { services: provider.cluster.id }
  const request = { cluster: context.cluster.id, ...services, target, query, body, timeoutMs, isReview: true } as const
  let verdict: Verdict
  try {
    const posted = outbound.post(request, signal)
    const answer = await (context.whileWaiting?.(posted) ?? posted)
    const failure = statusFailure(answer.status)
    if (failure !== undefined) throw new UndecodableReview(failure)
    verdict = readVerdict(answer.body, { uid, version, type })
  } catch (error) {
    throw callError(error, webhook, query)
  }
  for (const [key, value] of Object.entries(verdict.auditAnnotations)) context.annotate?.(`${name}/${key}`, value)
  context.warnings.push(...verdict.warnings)
  if (!verdict.allowed) throw deniedBy(name, verdict.result)
  return verdict
}

function callError(error: unknown, { name, target, provider }: Webhook, query: string): unknown {
  const isFailure = error instanceof EgressError || error instanceof UndecodableReview || error instanceof InvalidReview
  // Consumers learn no addresses of the provider.
  if (isFailure && provider !== undefined)
    return new WebhookCallError(name, `${providerText(provider)} gave no valid response`, error)
  if (error instanceof EgressError) {
    const call = `Post "${urlText(target, query)}": ${error.message}`
    return new WebhookCallError(name, `failed to call webhook: ${call}`, error)
  }
  if (error instanceof UndecodableReview)
    return new WebhookCallError(name, `failed to call webhook: ${error.message}`, error)
  if (error instanceof InvalidReview)
    return new WebhookCallError(name, `received invalid webhook response: ${error.message}`, error)
  return error
}

/** The provider in messages. */
function providerText({ exportName, cluster }: NonNullable<Webhook['provider']>): string {
  return `the provider (APIExport "${exportName}" of logical cluster "${cluster.name}")`
}
