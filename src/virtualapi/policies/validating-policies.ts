// ValidatingAdmissionPolicy as an admission plugin: runs the policies whose bindings match a request.
import type { KubeObject } from '../../apimachinery/meta/index.ts'
import { forbidden, notFound, requestEntityTooLarge, statusError } from '../../apimachinery/status/index.ts'
import type { AdmissionPlugin, AdmissionRequest } from '../admission/admission.ts'
import type { Authorizer } from '../authz/index.ts'
import type { Catalog } from '../catalog/catalog.ts'
import { decodeObject } from '../resources/object-bytes.ts'
import type { ResourceDefinition } from '../resources/resource-definition.ts'
import { withAuthorizer } from './ask-authorizer.ts'
import { collectParams, paramDefinition } from './collect-params.ts'
import { type Denial, evaluatePolicy } from './evaluate-policy.ts'
import { matchingForm, type MatchSubject, type ResourceMatch } from './match-resources.ts'
import { type Binding, boundPolicies, type BoundPolicy } from './policy-index.ts'
import { labelsOf, type ReviewedObjects, sharedVariables } from './policy-input.ts'

interface Parts {
  readonly authorizer: Pick<Authorizer, 'authorize'>
  readonly catalog: Catalog
}

const exempt = /^(?:validating|mutating)admissionpolic(?:ies|ybindings)$/
const codes: Readonly<Record<string, number>> = { Forbidden: 403, Unauthorized: 401, RequestEntityTooLarge: 413 }

/** Policies do not apply to policies and bindings: a wrong one could not be removed. */
export function validatingPolicies(parts: Parts): AdmissionPlugin {
  return {
    name: 'ValidatingAdmissionPolicy',
    validate(request, object, old) {
      const policies = boundPolicies(request.context.objects)
      const { group, resource } = request.definition.info
      if (policies.length === 0 || (group === 'admissionregistration.k8s.io' && exempt.test(resource))) return
      const review = new Review(parts, request, { object, old })
      return review.run(policies)
    },
  }
}

/** In cost units: what all policies may cost for one request. One alone may cost a quarter of it. */
const requestBudget = 40_000_000

interface Form extends MatchSubject {
  readonly definition: ResourceDefinition
}

interface Refusal extends Denial {
  readonly policy: string
  readonly binding: string | undefined
}

class Review {
  readonly #parts: Parts
  readonly #request: AdmissionRequest
  readonly #objects: ReviewedObjects
  readonly #own: Form
  #others: readonly Form[] | undefined
  #left = requestBudget

  constructor(parts: Parts, request: AdmissionRequest, objects: ReviewedObjects) {
    this.#parts = parts
    this.#request = request
    this.#objects = objects
    this.#own = this.#formOf(request.definition)
  }

  /** Throws the first denial. Waits for nothing if no policy matches. */
  run(policies: readonly BoundPolicy[]): Promise<void> | undefined {
    const matched = policies.flatMap((policy) => {
      const form = this.#match(policy.policy.match)
      return form === undefined ? [] : [{ policy, form: form.definition }]
    })
    return matched.length === 0 ? undefined : this.#decide(matched)
  }

  async #decide(matched: readonly { policy: BoundPolicy; form: ResourceDefinition }[]): Promise<void> {
    const refusals: Refusal[] = []
    for (const { policy, form } of matched) refusals.push(...(await this.#policy(policy, form)))
    const [first] = refusals
    if (first !== undefined) throw this.#error(first)
  }

  async #policy({ name, policy, bindings }: BoundPolicy, form: ResourceDefinition): Promise<Refusal[]> {
    const failed = (message: string, binding?: string): Refusal[] =>
      policy.failsOpen ? [] : [{ policy: name, binding, message, reason: 'Invalid', index: 0 }]
    const params = paramDefinition(policy, this.#request, this.#parts.catalog)
    if (typeof params === 'string') return failed(`failed to configure policy: ${params}`)
    const refusals: Refusal[] = []
    for (const binding of bindings) {
      if (binding.match !== undefined && this.#match(binding.match) === undefined) continue
      const found = collectParams(params, binding, this.#request)
      if (typeof found === 'string') refusals.push(...failed(`failed to configure binding: ${found}`, binding.name))
      else
        for (const param of found) {
          const denials = await withAuthorizer(this.#parts.authorizer, this.#request, (authorizer) => {
            const { namespace } = this
            const input = { request: this.#request, form, objects: this.#objects, namespace, authorizer }
            return evaluatePolicy(policy, { shared: sharedVariables(input), params: param, charge: this.#charge })
          })
          refusals.push(...denials.flatMap((denial) => this.#act(denial, name, binding)))
        }
    }
    return refusals
  }

  /** Throws 413 once all policies together cost too much. */
  readonly #charge = (cost: number): void => {
    this.#left -= cost
    if (this.#left < 0) throw requestEntityTooLarge('the admission policies take too long for one request')
  }

  #act(denial: Denial, policy: string, { name, spec }: Binding): Refusal[] {
    const actions = spec.validationActions
    if (actions.includes('Warn')) {
      const head = `Validation failed for ValidatingAdmissionPolicy '${policy}' with binding '${name}'`
      this.#request.context.warnings.push(`${head}: ${denial.message}`)
    }
    return actions.includes('Deny') ? [{ ...denial, policy, binding: name }] : []
  }

  #error({ policy, binding, message, reason }: Refusal): Error {
    const { definition, name } = this.#request
    const by = binding === undefined ? '' : ` with binding '${binding}'`
    const text = `ValidatingAdmissionPolicy '${policy}'${by} denied request: ${message}`
    const { metadata } = this.#objects.object ?? {}
    const shown = name || metadata?.name || metadata?.generateName || 'Unknown'
    const { status } = forbidden(definition.info, shown, text, [{ message: text }])
    return statusError(
      codes[reason] ?? 422,
      reason,
      status.message ?? '',
      status.details ? { details: status.details } : {},
    )
  }

  /** The form in which the request matches; undefined if it does not. */
  #match(match: ResourceMatch): Form | undefined {
    if (!this.#isSelected(match)) return undefined
    const others = (): readonly Form[] => (match.matchesEquivalent ? this.#equivalents() : [])
    if (match.excluded.length > 0 && matchingForm(match.excluded, this.#own, others) !== undefined) return undefined
    return match.rules.length === 0 ? this.#own : matchingForm(match.rules, this.#own, others)
  }

  #isSelected({ objectSelector, namespaceSelector }: ResourceMatch): boolean {
    const { object, old } = this.#objects
    const isChosen =
      objectSelector.matchesEverything ||
      [object, old].some((one) => one !== undefined && objectSelector.matches(labelsOf(one)))
    return isChosen && (namespaceSelector.matchesEverything || this.#isNamespaceSelected(namespaceSelector))
  }

  #isNamespaceSelected(selector: ResourceMatch['namespaceSelector']): boolean {
    const { definition, operation, subresource, context, name, namespace } = this.#request
    const isNamespaces = definition.info.group === '' && definition.info.resource === 'namespaces'
    if (namespace === '' && !isNamespaces) return true
    const { object } = this.#objects
    if (isNamespaces && subresource === '' && operation !== 'DELETE')
      return selector.matches(object && labelsOf(object))
    const wanted = isNamespaces ? name : namespace
    const entry = context.objects.get('namespaces', '', wanted)
    if (entry === undefined) throw notFound({ group: '', resource: 'namespaces' }, wanted)
    return selector.matches(entry.facts.labels)
  }

  /** The namespace of the object; none of a Namespace. */
  get namespace(): KubeObject | undefined {
    const { context, namespace, definition } = this.#request
    if (namespace === '' || definition.info.resource === 'namespaces') return undefined
    const entry = context.objects.get('namespaces', '', namespace)
    if (entry === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace)
    return decodeObject(entry.bytes)
  }

  #formOf(definition: ResourceDefinition): Form {
    const { operation, subresource, name, namespace } = this.#request
    const { group, version, resource } = definition.info
    const namespaced = namespace !== '' && !(group === '' && resource === 'namespaces')
    return { definition, operation, group, version, resource, subresource, name, namespaced }
  }

  #equivalents(): readonly Form[] {
    const { definition, context } = this.#request
    const { catalog } = this.#parts
    return (this.#others ??= catalog
      .all(context.objects)
      .filter(({ resource }) => resource === definition.info.resource)
      .flatMap((info) => catalog.find(context.objects, info) ?? [])
      .filter((other) => other.storageKey === definition.storageKey && other !== definition)
      .map((other) => this.#formOf(other)))
  }
}
