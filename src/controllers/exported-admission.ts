// The admission that an export brings to its consumers: webhook configurations and admission policies of its logical
// cluster whose rules match an exported resource, as far as the export offers them.
import type { GroupVersionResource, KubeObject } from '#apimachinery/meta/index.ts'
import type { KubeClient } from '#client/index.ts'
import type { APIExport, ExportAdmission } from '#crds/index.ts'

const registration = (resource: string): GroupVersionResource => ({
  group: 'admissionregistration.k8s.io',
  version: resource.startsWith('mutatingadmission') ? 'v1beta1' : 'v1',
  resource,
})

/** The resources on which it depends what an export brings. */
export const admissionResources = [
  'validatingwebhookconfigurations',
  'mutatingwebhookconfigurations',
  'validatingadmissionpolicies',
  'mutatingadmissionpolicies',
  'validatingadmissionpolicybindings',
  'mutatingadmissionpolicybindings',
].map(registration)
const [webhooks, policies, policyBindings] = [
  admissionResources.slice(0, 2),
  admissionResources.slice(2, 4),
  admissionResources.slice(4),
]
/** Names that a status has at most. */
const maxNames = 64

interface Rule {
  readonly apiGroups?: readonly string[]
  readonly resources?: readonly string[]
}

interface WebhookConfiguration extends KubeObject {
  webhooks?: { rules?: Rule[] }[]
}

interface Policy extends KubeObject {
  spec?: { matchConstraints?: { resourceRules?: Rule[] } }
}

interface PolicyBinding extends KubeObject {
  spec?: { policyName?: string }
}

/** What the export brings now; undefined: nothing. */
export async function exportedAdmission(
  { spec }: APIExport,
  client: KubeClient,
  signal: AbortSignal,
): Promise<ExportAdmission | undefined> {
  const { admission = {}, resources = [] } = spec ?? {}
  const listed = async <T extends KubeObject>(gvrs: readonly GroupVersionResource[]): Promise<T[]> =>
    (await Promise.all(gvrs.map((gvr) => client.list<T>(gvr, { signal })))).flatMap(({ items }) => items)
  const concerns = (rules: readonly Rule[]): boolean =>
    resources.some((resource) => rules.some((rule) => ruleConcerns(rule, resource)))
  const ofWebhooks = (await listed<WebhookConfiguration>(webhooks)).filter((one) =>
    concerns((one.webhooks ?? []).flatMap(({ rules = [] }) => rules)),
  )
  const all = await listed<Policy>(policies)
  const bound = all.length === 0 ? [] : await listed<PolicyBinding>(policyBindings)
  const used = new Set(bound.map((binding) => binding.spec?.policyName))
  const ofPolicies = all.filter(
    (one) => used.has(one.metadata.name) && concerns(one.spec?.matchConstraints?.resourceRules ?? []),
  )
  const brought = {
    webhooks: namesIn(ofWebhooks, admission.webhooks),
    policies: namesIn(ofPolicies, admission.policies),
  }
  const isRequired = admission.required === true
  if (brought.webhooks.length + brought.policies.length === 0 && !isRequired) return undefined
  return { ...brought, ...(isRequired && { required: true }) }
}

function namesIn(objects: readonly KubeObject[], offered: readonly string[] | undefined): string[] {
  const names = new Set(objects.map(({ metadata }) => metadata.name ?? ''))
  return [...names]
    .filter((name) => offered?.includes(name) ?? true)
    .sort()
    .slice(0, maxNames)
}

function ruleConcerns(
  { apiGroups = [], resources = [] }: Rule,
  { group, name }: { readonly group: string; readonly name: string },
): boolean {
  if (!apiGroups.includes('*') && !apiGroups.includes(group)) return false
  return resources.some((pattern) => ['*', name].includes(pattern.split('/')[0] ?? ''))
}
