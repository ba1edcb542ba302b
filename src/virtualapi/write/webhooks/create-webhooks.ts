// Creates the admission webhooks for the registry. A request of a logical cluster without webhooks costs two look-ups.
import {
  LateRounds,
  type AdmissionRequest,
  type MutatingRounds,
  type WebhookAdmission,
} from '#virtualapi/write/admission/admission.ts'
import { providerOf, type Provider } from '#virtualapi/write/admission/provider-admission.ts'
import { MutatingWebhooks } from './mutate.ts'
import { validateWithWebhooks } from './validate.ts'
import type { WebhookDependencies } from './webhook-dependencies.ts'
import { providedWebhooks, webhooksIn, type Webhook, type WebhookType } from './webhook-configurations.ts'

export function createWebhooks(dependencies: WebhookDependencies): WebhookAdmission {
  const roundsOf = (webhooks: readonly Webhook[]): MutatingRounds | undefined =>
    webhooks.length === 0 ? undefined : new MutatingWebhooks(dependencies, webhooks)
  return {
    mutating(request) {
      const webhooks = concerned(dependencies, request, 'mutating')
      return webhooks instanceof Promise ? new LateRounds(webhooks.then(roundsOf)) : roundsOf(webhooks)
    },
    validate(request, object, old) {
      const validated = (webhooks: readonly Webhook[]): Promise<void> | undefined =>
        webhooks.length === 0 ? undefined : validateWithWebhooks(dependencies, webhooks, request, { object, old })
      const webhooks = concerned(dependencies, request, 'validating')
      return webhooks instanceof Promise ? webhooks.then(validated) : validated(webhooks)
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
 * The webhooks that may concern a request, those of the provider of the resource first. No webhook is called for writes of the installation itself (syncers, loops),
 * which work for all logical clusters and would wait for the webhooks of one.
 */
function concerned(
  { providers }: WebhookDependencies,
  request: AdmissionRequest,
  type: WebhookType,
): readonly Webhook[] | Promise<readonly Webhook[]> {
  const { definition, context } = request
  const { group, kind } = definition.info
  if (context.user.realm.kind === 'installation' || context.admitted === true) return none
  if (group === 'admissionregistration.k8s.io' && exempt.has(kind)) return none
  const own = webhooksIn(context.objects, type)
  const provider = providerOf(providers, request, 'webhooks')
  if (provider === undefined) return own
  const all = (found: Provider | undefined): readonly Webhook[] =>
    found === undefined ? own : [...providedWebhooks(found, type), ...own]
  return provider instanceof Promise ? provider.then(all) : all(provider)
}
