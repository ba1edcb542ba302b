// The match of a request with a webhook, and the form in which the webhook gets it.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { notFound } from '#apimachinery/status/index.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { consumerForm, labelsForProvider } from '#virtualapi/write/admission/consumer-form.ts'
import { namespaceOf } from './admission-review.ts'
import {
  equivalentForms,
  ownForm,
  type FormDependencies,
  type ReviewedForm,
} from '#virtualapi/write/admission/reviewed-form.ts'
import { ruleMatches } from './rule-match.ts'
import type { Webhook } from './webhook-configurations.ts'

export interface Matched {
  readonly webhook: Webhook
  readonly form: ReviewedForm
}

interface Objects {
  readonly object: KubeObject | undefined
  readonly old: KubeObject | undefined
}

/**
 * The webhook with the form in which the request matches; undefined if it does not match. Throws 404 if the namespace
 * is gone.
 */
export function matchWebhook(
  webhook: Webhook,
  request: AdmissionRequest,
  objects: Objects,
  dependencies: FormDependencies,
): Matched | undefined {
  const form = formFor(webhook, request, dependencies)
  if (form === undefined) return undefined
  if (!namespaceMatches(webhook, request, objects)) return undefined
  const { objectSelector } = webhook
  const isSelected =
    objectSelector.matchesEverything ||
    [objects.object, objects.old].some((one) => one !== undefined && objectSelector.matches(labelsOf(one)))
  if (!isSelected) return undefined
  const { provider } = webhook
  return { webhook, form: provider === undefined ? form : consumerForm(form, request.context.cluster.name) }
}

/**
 * The labels of an object. The options of a connection have no metadata, so only a selector that matches everything
 * matches them.
 */
function labelsOf(object: Partial<KubeObject>): Readonly<Record<string, string>> | undefined {
  return object.metadata?.labels
}

function formFor(
  webhook: Webhook,
  request: AdmissionRequest,
  dependencies: FormDependencies,
): ReviewedForm | undefined {
  const { operation, subresource } = request
  const namespace = namespaceOf(request)
  const subjectOf = ({ group, version, resource }: ReviewedForm) => {
    return { operation, subresource, namespace, group, version, resource }
  }
  const own = ownForm(request)
  if (webhook.rules.some((rule) => ruleMatches(rule, subjectOf(own)))) return own
  if (!webhook.matchesEquivalent) return undefined
  const others = equivalentForms(request, dependencies)
  // Earlier rules take precedence, whichever form they match.
  for (const rule of webhook.rules) {
    const found = others.find((form) => ruleMatches(rule, subjectOf(form)))
    if (found !== undefined) return found
  }
  return undefined
}

function namespaceMatches(
  { namespaceSelector, provider }: Webhook,
  request: AdmissionRequest,
  { object }: Objects,
): boolean {
  const { definition, operation, subresource, context } = request
  const namespace = namespaceOf(request)
  const isNamespaces = definition.info.resource === 'namespaces'
  if (namespaceSelector.matchesEverything || (namespace === '' && !isNamespaces)) return true
  // The new form of a namespace that is being written is not stored yet.
  if (isNamespaces && subresource === '' && (operation === 'CREATE' || operation === 'UPDATE'))
    return namespaceSelector.matches(object?.metadata.labels)
  const entry = context.objects.get('namespaces', '', namespace)
  if (entry === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace)
  return namespaceSelector.matches(provider === undefined ? entry.facts.labels : labelsForProvider(namespace))
}
