// The match of a request with an admission policy or a binding, and the form in which the policy gets its objects.
import type { KubeObject } from '#apimachinery/meta/index.ts'
import { notFound } from '#apimachinery/status/index.ts'
import type { AdmissionRequest } from '#virtualapi/write/admission/admission.ts'
import { consumerForm, labelsForProvider, namespaceForProvider } from '#virtualapi/write/admission/consumer-form.ts'
import {
  equivalentForms,
  type FormDependencies,
  ownForm,
  type ReviewedForm,
} from '#virtualapi/write/admission/reviewed-form.ts'
import { decodeObject } from '#virtualapi/kinds/resources/object-bytes.ts'
import { matchingForm, type MatchSubject, type ResourceMatch } from './match-resources.ts'

export interface ReviewedObjects {
  readonly object: KubeObject | undefined
  readonly old: KubeObject | undefined
}

export interface MatchOptions {
  /** The policies are those of the provider of the resource, and the request is of a consumer. */
  readonly ofProvider?: boolean
}

interface Form extends MatchSubject {
  readonly reviewed: ReviewedForm
}

/** The matching of one request. All policies get the same objects as its forms. */
export class RequestMatch {
  readonly #request: AdmissionRequest
  readonly #objects: ReviewedObjects
  readonly #dependencies: FormDependencies
  readonly #ofProvider: boolean
  readonly #own: Form
  #others: readonly Form[] | undefined

  constructor(
    request: AdmissionRequest,
    objects: ReviewedObjects,
    { ofProvider = false, ...dependencies }: FormDependencies & MatchOptions,
  ) {
    this.#ofProvider = ofProvider
    this.#request = request
    this.#objects = objects
    this.#dependencies = dependencies
    this.#own = this.#formOf(ownForm(request))
  }

  get own(): ReviewedForm {
    return this.#own.reviewed
  }

  /** The form in which the request matches; undefined if it does not. Throws 404 if the namespace is gone. */
  form(match: ResourceMatch): ReviewedForm | undefined {
    if (!this.#isSelected(match)) return undefined
    const others = (): readonly Form[] => (match.matchesEquivalent ? this.#equivalents() : [])
    if (match.excluded.length > 0 && matchingForm(match.excluded, this.#own, others) !== undefined) return undefined
    return match.rules.length === 0 ? this.own : matchingForm(match.rules, this.#own, others)?.reviewed
  }

  /**
   * The namespace of the object; undefined for a Namespace and for cluster-scoped objects. Throws 404 if it is gone.
   */
  get namespace(): KubeObject | undefined {
    const { context, namespace } = this.#request
    if (!this.#own.namespaced) return undefined
    const entry = context.objects.get('namespaces', '', namespace)
    if (entry === undefined) throw notFound({ group: '', resource: 'namespaces' }, namespace)
    return this.#ofProvider ? namespaceForProvider(namespace) : decodeObject(entry.bytes)
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
    // The new form of a namespace that is being written is not stored yet.
    if (isNamespaces && subresource === '' && operation !== 'DELETE')
      return selector.matches(object && labelsOf(object))
    const wanted = isNamespaces ? name : namespace
    const entry = context.objects.get('namespaces', '', wanted)
    if (entry === undefined) throw notFound({ group: '', resource: 'namespaces' }, wanted)
    return selector.matches(this.#ofProvider ? labelsForProvider(wanted) : entry.facts.labels)
  }

  #formOf(form: ReviewedForm): Form {
    const reviewed = this.#ofProvider ? consumerForm(form, this.#request.context.cluster.name) : form
    const { operation, subresource, namespace, name, ofCollection = false } = this.#request
    const { group, version, resource } = reviewed
    const namespaced = namespace !== '' && !(group === '' && resource === 'namespaces')
    return { reviewed, operation, group, version, resource, subresource, name: ofCollection ? '' : name, namespaced }
  }

  #equivalents(): readonly Form[] {
    return (this.#others ??= equivalentForms(this.#request, this.#dependencies).map((form) => this.#formOf(form)))
  }
}

/** The labels of an object; undefined if it has no metadata or no labels. */
function labelsOf(object: Partial<KubeObject>): Readonly<Record<string, string>> | undefined {
  return object.metadata?.labels
}
