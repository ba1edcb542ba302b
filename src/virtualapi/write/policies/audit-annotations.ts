// The annotations that ValidatingAdmissionPolicies write into the audit line of a request.
import type { RequestContext } from '#virtualapi/kinds/resources/resource-definition.ts'
import type { AuditAnnotation, Denial } from './evaluate-policy.ts'

const maxValueBytes = 10 * 1024

/** The audit annotations of one policy: its bindings and their parameters may give several values for one key. */
export class AuditAnnotations {
  readonly #policy: string
  readonly #values = new Map<string, Set<string>>()

  constructor(policy: string) {
    this.#policy = policy
  }

  add({ key, value }: AuditAnnotation): void {
    const values = this.#values.get(key) ?? new Set<string>()
    this.#values.set(key, values.add(atMost(maxValueBytes, value)))
  }

  publish({ annotate }: RequestContext): void {
    for (const [key, values] of this.#values) annotate?.(`${this.#policy}/${key}`, [...values].join(', '))
  }
}

/** The text, cut to a number of bytes. */
function atMost(bytes: number, text: string): string {
  const encoded = Buffer.from(text)
  return encoded.length <= bytes ? text : encoded.subarray(0, bytes).toString()
}

/** The annotation of a validation that failed under the action Audit. */
export function validationFailure(
  { message, index }: Denial,
  { policy, binding, actions }: { policy: string; binding: string; actions: readonly string[] },
): { readonly key: string; readonly value: string } {
  const failure = { message, policy, binding, expressionIndex: index, validationActions: actions }
  return { key: 'validation.policy.admission.k8s.io/validation_failure', value: JSON.stringify([failure]) }
}
