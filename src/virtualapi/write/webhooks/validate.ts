// Calls all matching validating webhooks at once. The first refusal, in the order of the webhooks, is the response to
// the client.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import type { Shown } from '#virtualapi/write/admission/shown.ts'
import { callWebhook } from './call-webhook.ts'
import type { WebhookDependencies } from './webhook-dependencies.ts'
import { conditionsHold } from './match-conditions.ts'
import { matchWebhook } from './match-webhook.ts'
import { ownForm } from '#virtualapi/write/admission/reviewed-form.ts'
import type { Webhook } from './webhook-configurations.ts'
import { WebhookCallError } from './webhook-errors.ts'

interface Call {
  readonly webhook: Webhook
  readonly shown: Shown
}

/** Rejects with the StatusError of the first webhook that refused or failed closed. */
export async function validateWithWebhooks(
  dependencies: WebhookDependencies,
  webhooks: readonly Webhook[],
  request: AdmissionRequest,
  { object, old }: { readonly object: KubeObject | undefined; readonly old: KubeObject | undefined },
): Promise<void> {
  const calls: Call[] = []
  const own = ownForm(request)
  for (const webhook of webhooks) {
    const matched = matchWebhook(webhook, request, { object, old }, dependencies)
    if (matched === undefined) continue
    const { form } = matched
    const shown: Shown = {
      request,
      own,
      form,
      object: object && (await form.show(object)),
      old: old && (await form.show(old)),
    }
    const isCalled =
      webhook.matchConditions.length === 0 || (await conditionsHold(webhook, shown, dependencies.authorizer))
    if (isCalled) calls.push({ webhook, shown })
  }
  const results = await Promise.allSettled(calls.map((call, index) => validate(dependencies, call, index)))
  const refused = results.find((result) => result.status === 'rejected')
  if (refused !== undefined) throw refused.reason
}

async function validate({ outbound }: WebhookDependencies, { webhook, shown }: Call, index: number): Promise<void> {
  try {
    await callWebhook(webhook, shown, { outbound, type: 'validating' })
  } catch (error) {
    if (!(error instanceof WebhookCallError)) throw error
    if (!webhook.failsOpen) throw error.status
    shown.request.context.annotate?.(
      `failed-open.validating.webhook.admission.k8s.io/round_0_index_${index}`,
      webhook.name,
    )
  }
}
