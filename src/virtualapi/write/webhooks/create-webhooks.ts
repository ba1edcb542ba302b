// Creates the admission webhooks for the registry. A request of a logical cluster without webhooks costs two look-ups.
import type { AdmissionRequest, WebhookAdmission } from '#virtualapi/write/admission/admission.ts'
import { MutatingWebhooks } from './mutate.ts'
import { validateWithWebhooks } from './validate.ts'
import type { WebhookDependencies } from './webhook-dependencies.ts'
import { webhooksIn, type Webhook, type WebhookType } from './webhook-configurations.ts'

export function createWebhooks(dependencies: WebhookDependencies): WebhookAdmission {
  return {
    mutating(request) {
      const webhooks = concerned(request, 'mutating')
      return webhooks.length === 0 ? undefined : new MutatingWebhooks(dependencies, webhooks)
    },
    validate(request, object, old) {
      const webhooks = concerned(request, 'validating')
      return webhooks.length === 0 ? undefined : validateWithWebhooks(dependencies, webhooks, request, { object, old })
    },
  }
}

const none: readonly Webhook[] = []

/** Kinds for which no webhook is called, so that a broken webhook can always be removed. */
const exempt: ReadonlySet<string> = new Set([
  'ValidatingWebhookConfiguration',
  'MutatingWebhookConfiguration',
  'ValidatingAdmissionPolicy',
  'ValidatingAdmissionPolicyBinding',
  'MutatingAdmissionPolicy',
  'MutatingAdmissionPolicyBinding',
])

/**
 * The webhooks that may concern a request. No webhook is called for writes of the installation itself (syncers, loops),
 * which work for all logical clusters and would wait for the webhooks of one.
 */
function concerned({ definition, context }: AdmissionRequest, type: WebhookType): readonly Webhook[] {
  const { group, kind } = definition.info
  if (context.user.realm.kind === 'installation' || context.admitted === true) return none
  if (group === 'admissionregistration.k8s.io' && exempt.has(kind)) return none
  return webhooksIn(context.objects, type)
}
